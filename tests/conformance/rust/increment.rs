// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn increment_main(payload: &mut [u8]) {
        match (read::<u64>(payload, 0), unsafe { data!("counter") }) {
            (Some(by), Some(counter)) => {
                let sum = read::<u64>(counter, 0).unwrap().wrapping_add(by);
                counter.copy_from_slice(&sum.to_ne_bytes());
                let _ = reply(counter);
            }
            _ => fail!(1, "no counter, or no number"),
        }
    }
}
