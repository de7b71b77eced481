// SPDX-License-Identifier: Apache-2.0
//
// Each way in which Rust panics fails the call, with its code, words and the author's line, and nothing of Rust's
// panic machinery is left.
//
// REQUIRES: rustc
// RUN: %build %s --name all --target x86_64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %s --check-prefix=CODES
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %s --check-prefix=NOTHING
//
// NOTHING-NOT: {{panic|core[.0-9]|rust_begin_unwind|ud2}}
//
// CODES-DAG: movl $-3, %edi
// CODES-DAG: movl $-4, %edi
// CODES-DAG: movl $-5, %edi
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn all_main(payload: &mut [u8]) {
        let kind = read::<u32>(payload, 0).unwrap_or(0);
        let n = read::<i64>(payload, 8).unwrap_or(0);
        let answer: i64 = match kind {
            // CODES-DAG: .asciz "index out of bounds at rust.rs:[[#@LINE+1]]"
            0 => payload[n as usize] as i64,
            // CODES-DAG: .asciz "slice index out of range at rust.rs:[[#@LINE+1]]"
            1 => payload[n as usize..].len() as i64,
            // CODES-DAG: .asciz "division by zero at rust.rs:[[#@LINE+1]]"
            2 => 17 / n,
            // CODES-DAG: .asciz "unwrap() of None at rust.rs:[[#@LINE+1]]"
            3 => read::<i64>(payload, n as usize).unwrap(),
            // CODES-DAG: .asciz "no such kind at rust.rs:[[#@LINE+1]]"
            4 => panic!("no such kind"),
            // CODES-DAG: .asciz "a number of eight bytes at rust.rs:[[#@LINE+1]]"
            5 => read::<i64>(payload, n as usize).expect("a number of eight bytes"),
            // CODES-DAG: .asciz "{{.*}}unreachable code{{.*}} at rust.rs:[[#@LINE+1]]"
            6 => unreachable!(),
            // CODES-DAG: .asciz "arithmetic overflow at rust.rs:[[#@LINE+1]]"
            7 => core::hint::black_box(i64::MIN) / n,
            // CODES-DAG: .asciz "assertion failed: n > 3 at rust.rs:[[#@LINE+1]]"
            8 => { assert!(n > 3); n }
            _ => n,
        };
        let _ = reply(bytes_of(&answer));
    }
}
