// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn chase_main(payload: &mut [u8]) {
        let mut at = read::<u64>(payload, 0).unwrap();
        let steps = read::<u64>(payload, 8).unwrap();
        let table = slice_of::<u64>(unsafe { data!("table") }.unwrap()).unwrap();
        for _ in 0..steps {
            at = table[at as usize];
        }
        let _ = reply(bytes_of(&at));
    }
}
