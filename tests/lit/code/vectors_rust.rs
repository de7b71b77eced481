// SPDX-License-Identifier: Apache-2.0
//
// Rust's loops reach the target before they are vectorised, as C's do, and get the vectors that its CPU has. Its checks
// become tc_fail(), outside of the loop.
//
// REQUIRES: rustc
// RUN: %build %s --name dot --target x86_64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 %t.ifunc | %FileCheck %s --check-prefix=SSE
// RUN: %asm-x86 --cpu haswell %t.ifunc | %FileCheck %s --check-prefix=AVX2
// RUN: %asm-x86 --cpu sapphirerapids %t.ifunc | %FileCheck %s --check-prefix=AVX512
//
// SSE-LABEL: ifunc_main:
// SSE-NOT: {{[yz]mm}}
// SSE: pmulld {{.*}}xmm
//
// AVX2-LABEL: ifunc_main:
// AVX2: vpmulld {{.*}}ymm
//
// AVX512-LABEL: ifunc_main:
// AVX512: vpmulld {{.*}}zmm
#![no_std]
use threechains_ifunc::*;

ifunc! {
    fn dot_main(payload: &mut [u8]) {
        let all = slice_of::<u32>(payload).unwrap();
        let (a, b) = all.split_at(all.len() / 2);
        let sum = a.iter().zip(b).fold(0u32, |sum, (x, y)| sum.wrapping_add(x.wrapping_mul(*y)));
        let _ = reply(bytes_of(&sum));
    }
}
