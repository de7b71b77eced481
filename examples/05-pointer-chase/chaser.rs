// SPDX-License-Identifier: Apache-2.0
//! The Chaser of chaser.c in Rust, for the same tables and payloads: `ifunc build chaser.rs --with return_result.ifunc`.
#![no_std]
use threechains_ifunc::*;

const TO_CALLER: u32 = u32::MAX;

#[inline(always)]
fn finish(address: u64, destination: u32) {
    let end = bytes_of(&address);
    if destination == TO_CALLER {
        if reply(end).is_err() {
            fail!(5, "whoever asked is gone");
        }
    } else if inject!(destination, "return_result", end).is_err() {
        fail!(5, "return_result cannot be sent to the destination");
    }
}

ifunc! {
    fn chaser_main(payload: &mut [u8]) {
        if payload.len() != 16 {
            return fail!(1, "a chase is 16 bytes: address, depth, destination");
        }
        let (mut address, mut depth) = (read::<u64>(payload, 0).unwrap(), read::<u32>(payload, 8).unwrap());
        let destination = read::<u32>(payload, 12).unwrap();
        let shard = match unsafe { data!("chase-table") } {
            Some(bytes) => slice_of::<u64>(bytes).unwrap(),
            None => &[],
        };
        let entries = shard.len() as u64;
        if entries == 0 {
            return fail!(2, "this node exposes no chase-table");
        }
        let first = id() as u64 * entries;
        while depth > 0 {
            // Huge for addresses below ours. The bounds check of `get` is the question whether the address is here.
            match shard.get(address.wrapping_sub(first) as usize) {
                Some(next) => address = *next,
                None => break,
            }
            depth -= 1;
        }
        if depth == 0 {
            return finish(address, destination);
        }
        payload[..8].copy_from_slice(&address.to_le_bytes());
        payload[8..12].copy_from_slice(&depth.to_le_bytes());
        let owner = u32::try_from(address / entries);
        match owner.map_or(Err(Status::NOT_FOUND), |owner| forward(owner, payload)) {
            Ok(()) => (),
            Err(Status::NOT_FOUND) => fail!(3, "the address lies behind the table's end"),
            Err(_) => fail!(4, "the server of the next entry cannot be reached"),
        }
    }
}
