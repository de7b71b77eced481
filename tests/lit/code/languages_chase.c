// SPDX-License-Identifier: Apache-2.0
//
// A step of the pointer chase is the same seven instructions in every language: two for the question whether the
// address is here, one load, one for the depth, one move, and two jumps. What they do besides is outside of the loop.
//
// RUN: %build %examples/05-pointer-chase/chaser.c --name chaser -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %s
// RUN: %if rustc %{ %build %examples/05-pointer-chase/chaser.rs --target x86_64-linux-gnu -o %t-rust.ifunc %}
// RUN: %if rustc %{ %asm-x86 --cpu x86-64 %t-rust.ifunc | %FileCheck %s %}
// RUN: %if julia %{ %build %examples/05-pointer-chase/chaser.jl --target x86_64-linux-gnu -o %t-julia.ifunc %}
// RUN: %if julia %{ %asm-x86 --cpu x86-64 %t-julia.ifunc | %FileCheck %s %}
//
// CHECK: [[LOOP:\.LBB[0-9_]+]]:
// CHECK-NEXT: movq [[ADDRESS:%r[0-9a-z]+]], [[OFFSET:%r[0-9a-z]+]]
// CHECK-NEXT: subq %r{{[0-9a-z]+}}, [[OFFSET]]
// CHECK-NEXT: cmpq %r{{[0-9a-z]+}}, [[OFFSET]]
// CHECK-NEXT: jae
// CHECK-NEXT: movq (%r{{[0-9a-z]+}},[[OFFSET]],8), [[ADDRESS]]
// CHECK-NEXT: decl
// CHECK-NEXT: jne [[LOOP]]
