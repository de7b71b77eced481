; SPDX-License-Identifier: Apache-2.0
;
; Aliases are followed, those of entries and those in between: Zig and older C++ compilers make them, and no loader of
; ours sees one.
;
; RUN: %build %s --name foo -o %t.ifunc
; RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %s
;
; CHECK-LABEL: ifunc_main:
; CHECK: addq $3, %rsi
; CHECK-NEXT: movq %rsi, (%rdx)
; CHECK-NEXT: retq
; CHECK-NOT: {{foo_main|other|\.set}}
target triple = "x86_64-linux-gnu"
@foo_main = alias void (ptr, i64, ptr), ptr @real
@other = internal alias i64 (i64), ptr @add
define internal void @real(ptr %p, i64 %n, ptr %t) {
  %sum = call i64 @other(i64 %n)
  store i64 %sum, ptr %t
  ret void
}
define internal i64 @add(i64 %n) {
  %sum = add i64 %n, 3
  ret i64 %sum
}
