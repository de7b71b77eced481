// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn reply_main(payload: &mut [u8]) {
        payload.reverse();
        let _ = reply(payload);
    }
}
