// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn named_data_main(_payload: &mut [u8]) {
        let size = unsafe { data!("text") }.map_or(0, |text| text.len());
        let there = unsafe { data!("nothing") }.is_some();
        let _ = reply(bytes_of(&[size as u64, there as u64]));
    }
}
