; SPDX-License-Identifier: Apache-2.0
;
; Bitcode whose own system or layout shows: what differs from the target's is refused, also without positions.
;
; RUN: %cases %s %t
; RUN: %refuses %t/system.ll --target x86_64-linux-gnu | %FileCheck %t/system.ll
; RUN: %refuses %t/layout.ll --target aarch64-linux-gnu | %FileCheck %t/layout.ll
; RUN: %refuses %t/address_space.ll --target aarch64-linux-gnu | %FileCheck %t/address_space.ll
; RUN: %build %t/address_space.ll -o %t.ifunc

;--- system.ll
; CHECK: system.ll: {{.*}}x86_64-apple-macosx
target triple = "x86_64-apple-macosx"
define void @system_main(ptr %p, i64 %n, ptr %t) {
  ret void
}

;--- layout.ll
; As LLVM 17 and older laid it out: 128-bit integers at multiples of 8.
; CHECK: layout.ll: {{.*}}cannot be made into aarch64-linux-gnu: the structure %mixed = type { i64, i128 } has another layout there
target datalayout = "e-m:o-i64:64-i128:64-n8:16:32:64-S128"
target triple = "x86_64-linux-gnu"
%mixed = type { i64, i128 }
@kept = internal global %mixed zeroinitializer
define void @layout_main(ptr %p, i64 %n, ptr %t) {
  store volatile i64 %n, ptr @kept
  %v = load volatile i64, ptr @kept
  store i64 %v, ptr %t
  ret void
}

;--- address_space.ll
; CHECK: address_space.ll: {{.*}}it uses pointers of address space 256
target triple = "x86_64-linux-gnu"
define void @address_space_main(ptr %p, i64 %n, ptr %t) {
  %own = addrspacecast ptr %p to ptr addrspace(256)
  %number = load i64, ptr addrspace(256) %own
  store i64 %number, ptr %t
  ret void
}
