// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn search_main(payload: &mut [u8]) {
        let text = unsafe { data!("text") }.unwrap();
        let found = text.windows(payload.len()).position(|window| window == &*payload);
        let _ = reply(bytes_of(&found.map_or(u64::MAX, |at| at as u64)));
    }
}
