// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn fail_main(_payload: &mut [u8]) {
        fail!(42, "no such luck");
    }
}
