// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

extern "C" {
    fn hypot(x: f64, y: f64) -> f64;
}

ifunc! {
    fn library_main(payload: &mut [u8]) {
        let [x, y] = read::<[f64; 2]>(payload, 0).unwrap();
        let longest = unsafe { hypot(x, y) };
        let _ = reply(bytes_of(&longest));
    }
}
