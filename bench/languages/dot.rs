// SPDX-License-Identifier: Apache-2.0
//! dot.c in Rust.
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn dot_main(_payload: &mut [u8]) {
        let numbers = slice_of::<f64>(unsafe { data!("numbers") }.unwrap()).unwrap();
        let (a, b) = numbers.split_at(numbers.len() / 2);
        let sum = a.iter().zip(b).fold(0.0, |sum, (x, y)| algebraic::add(sum, algebraic::mul(*x, *y)));
        let _ = reply(bytes_of(&sum));
    }
}
