// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn dot_main(payload: &mut [u8]) {
        let all = slice_of::<f64>(payload).unwrap();
        let (a, b) = all.split_at(all.len() / 2);
        let sum = a.iter().zip(b).fold(0.0, |sum, (x, y)| sum + x * y);
        let _ = reply(bytes_of(&sum));
    }
}
