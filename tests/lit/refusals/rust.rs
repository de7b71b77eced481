// SPDX-License-Identifier: Apache-2.0
//
// What cannot travel from Rust. (For x86-64 alone: many a rustc knows one processor only.)
//
// REQUIRES: rustc
// RUN: %cases %s %t
// RUN: %refuses --target x86_64-linux-gnu %t/unknown.rs | %FileCheck %t/unknown.rs
// RUN: %refuses --target x86_64-linux-gnu %t/address.rs | %FileCheck %t/address.rs
// RUN: %refuses --target x86_64-linux-gnu %t/local.rs | %FileCheck %t/local.rs
// RUN: %refuses --target x86_64-linux-gnu %t/constructor.rs | %FileCheck %t/constructor.rs
// RUN: %refuses --target x86_64-linux-gnu %t/assembly.rs | %FileCheck %t/assembly.rs
// RUN: %refuses --target x86_64-linux-gnu %t/allocation.rs | %FileCheck %t/allocation.rs
// RUN: %refuses --target x86_64-linux-gnu %t/printing.rs | %FileCheck %t/printing.rs
// RUN: %refuses --target x86_64-linux-gnu %t/formatting.rs | %FileCheck %t/formatting.rs
// RUN: %refuses --target x86_64-linux-gnu %t/text.rs | %FileCheck %t/text.rs
// RUN: %build %t/unknown.rs --extern db_insert --target x86_64-linux-gnu -o %t.ifunc

//--- unknown.rs
#![no_std]
use threechains_ifunc::*;
extern "C" {
    fn db_insert(bytes: *const u8) -> i32;
}
ifunc! {
    fn unknown_main(payload: &mut [u8]) {
        // CHECK: unknown.rs:[[#@LINE+1]]: 'db_insert' is called but neither the ifunc ABI nor a declared library defines it
        let n = unsafe { db_insert(payload.as_ptr()) };
        let _ = reply(bytes_of(&n));
    }
}

//--- address.rs
#![no_std]
use threechains_ifunc::*;
ifunc! {
    fn address_main(_payload: &mut [u8]) {
        // CHECK: address.rs:[[#@LINE+1]]: address 0x7f1234567890 is written into the code{{.*}}tc_data()
        let n = unsafe { core::ptr::read_volatile(0x7f1234567890u64 as *const u32) };
        let _ = reply(bytes_of(&n));
    }
}

//--- local.rs
use std::cell::Cell;
use threechains_ifunc::*;
thread_local! { static SEEN: Cell<u32> = const { Cell::new(0) }; }
ifunc! {
    fn local_main(_payload: &mut [u8]) {
        // CHECK: local.rs:{{[0-9]+}}: '{{.*}}SEEN{{.*}}' is thread-local
        let n = SEEN.with(|seen| { seen.set(seen.get() + 1); seen.get() });
        let _ = reply(bytes_of(&n));
    }
}

//--- constructor.rs
#![no_std]
use threechains_ifunc::*;
extern "C" fn begin() {}
#[used]
#[link_section = ".init_array"]
static START: extern "C" fn() = begin;
// CHECK: constructor.rs: '{{.*}}START{{.*}}' stands in the section .init_array{{.*}}initialise in constructor_main
ifunc! {
    fn constructor_main(payload: &mut [u8]) {
        let _ = reply(payload);
    }
}

//--- assembly.rs
#![no_std]
use threechains_ifunc::*;
ifunc! {
    fn assembly_main(payload: &mut [u8]) {
        // CHECK: assembly.rs:[[#@LINE+1]]: inline assembly 'nop' is for one kind of CPU only{{.*}}--allow-asm
        unsafe { core::arch::asm!("nop") };
        let _ = reply(payload);
    }
}

//--- allocation.rs
#![no_std]
extern crate alloc;
use threechains_ifunc::*;
ifunc! {
    fn allocation_main(payload: &mut [u8]) {
        // CHECK: allocation.rs:[[#@LINE+1]]: '{{.*}}__rust_alloc{{.*}}a target does not have it; {{.*}}do without formatting and allocation
        let copy: alloc::vec::Vec<u8> = payload.to_vec();
        let _ = reply(&copy);
    }
}

//--- printing.rs
use threechains_ifunc::*;
ifunc! {
    fn printing_main(payload: &mut [u8]) {
        // CHECK: printing.rs:[[#@LINE+1]]: 'std::io::stdio::_print'{{.*}}Rust's own libraries do not travel
        println!("{}", payload.len());
    }
}

//--- formatting.rs
#![no_std]
use core::fmt::Write;
use threechains_ifunc::*;
struct Words(u32);
impl Write for Words {
    fn write_str(&mut self, s: &str) -> core::fmt::Result {
        self.0 += s.len() as u32;
        Ok(())
    }
}
ifunc! {
    fn formatting_main(payload: &mut [u8]) {
        let mut words = Words(0);
        // CHECK: formatting.rs:[[#@LINE+1]]: '{{.*}}core::fmt::{{.*}}Rust's own libraries do not travel
        let _ = write!(words, "{}", payload.len());
        let _ = reply(bytes_of(&words.0));
    }
}

//--- text.rs
#![no_std]
use threechains_ifunc::*;
ifunc! {
    fn text_main(payload: &mut [u8]) {
        // CHECK: text.rs:[[#@LINE+1]]: 'core::str::converts::from_utf8'{{.*}}Rust's own libraries do not travel
        if core::str::from_utf8(payload).is_ok() {
            let _ = reply(payload);
        }
    }
}
