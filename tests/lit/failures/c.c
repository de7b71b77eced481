// SPDX-License-Identifier: Apache-2.0
//
// What would end a process fails the call, with a code, words and the author's line; bitcode as a target compiles it.
//
// RUN: %cases %s %t
// RUN: %build %t/trap.c --target x86_64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/trap.c
// RUN: %build %t/abort.c --target x86_64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/abort.c
// RUN: %build %t/assert.c --target x86_64-linux-gnu -o %t.ifunc
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/assert.c
// RUN: %build %t/overflow.c --target x86_64-linux-gnu -o %t.ifunc -- -fsanitize=signed-integer-overflow -fsanitize-trap=all
// RUN: %asm-x86 --cpu x86-64 %t.ifunc | %FileCheck %t/overflow.c

//--- trap.c
void trap_main(void *payload, unsigned long size, void *target) {
  if (size > 3) __builtin_trap();
  *(int *)target = *(int *)payload;
}
// CHECK-LABEL: ifunc_main:
// CHECK-NOT: ud2
// CHECK: movl $-1, %edi
// CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
// CHECK-NOT: ud2
// CHECK: .asciz "trap (a compiler's check failed, or __builtin_trap()) at trap.c:2"

//--- abort.c
_Noreturn void abort(void);
void abort_main(void *payload, unsigned long size, void *target) {
  if (size > 3) abort();
  *(int *)target = *(int *)payload;
}
// CHECK-NOT: {{abort(@|$)}}
// CHECK: movl $-2, %edi
// CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
// CHECK: .asciz "abort() at abort.c:3"

//--- assert.c
#include <assert.h>
void assert_main(void *payload, unsigned long size, void *target) {
  assert(size < 4);
  *(int *)target = *(int *)payload;
}
// CHECK-NOT: __assert_fail
// CHECK: movl $-2, %edi
// CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
// CHECK: .asciz "assertion 'size < 4' failed at assert.c:3"

//--- overflow.c
void overflow_main(void *payload, unsigned long size, void *target) { *(int *)target = *(int *)payload + (int)size; }
// CHECK: j{{n?}}o {{.*}}
// CHECK: movl $-1, %edi
// CHECK-NEXT: {{jmp|callq}}{{.*}}tc_fail
// CHECK: .asciz "trap {{.*}} at overflow.c:1"
