// SPDX-License-Identifier: Apache-2.0
#![no_std]
use threechains_ifunc::*;

#[repr(C)]
#[derive(Clone, Copy)]
struct Order {
    amount: u32,
    change: i16,
    level: u8,
    price: f64,
}
unsafe impl Plain for Order {}

#[repr(C)]
#[derive(Clone, Copy)]
struct Answer {
    total: f64,
    left: i64,
}
unsafe impl Plain for Answer {}

ifunc! {
    fn structure_main(payload: &mut [u8]) {
        let order = read::<Order>(payload, 0).unwrap();
        let left = order.amount as i64 + order.change as i64 - order.level as i64;
        let _ = reply(bytes_of(&Answer { total: order.price * order.amount as f64, left }));
    }
}
