// SPDX-License-Identifier: Apache-2.0
//
// Machine code is shown as it is in the file: constants in front of the code are not taken for code, and a branch
// leads to the label that stands there.
//
// RUN: %build %s --name steps -o %t.ifunc
// RUN: %asm-x86 %t.ifunc | %FileCheck %s --check-prefix=X86
// RUN: %asm-arm %t.ifunc | %FileCheck %s --check-prefix=ARM
// RUN: %not %ifunc inspect --asm --cpu no-such-cpu --target x86_64-linux-gnu %t.ifunc 2>&1 | %FileCheck %s --check-prefix=CPU
// RUN: %not %ifunc inspect --asm --target riscv64-linux-gnu %t.ifunc 2>&1 | %FileCheck %s --check-prefix=SLICE
// RUN: %not %ifunc inspect --asm --target s390x-linux-gnu %t.ifunc 2>&1 | %FileCheck %s --check-prefix=ENDIAN
// RUN: %ifunc inspect --cpu list --target aarch64-linux-gnu | %FileCheck %s --check-prefix=LIST
//
// X86: # steps, slice 1: machine code for x86-64-v2 (x86_64-linux-gnu)
// X86-NEXT: ifunc_main:
// X86: j{{[a-z]+}} 0x[[TO:[0-9a-f]+]]
// X86: L[[TO]]:
// X86-NOT: .byte
// ARM: # steps, slice 3: machine code for generic (aarch64-linux-gnu)
// ARM-NEXT: ifunc_main:
// ARM: {{b\.|cb}}{{.*}}0x[[TO:[0-9a-f]+]]
// ARM: L[[TO]]:
// CPU: ifunc inspect: {{.*}}.ifunc: LLVM knows no CPU 'no-such-cpu' for x86_64
// SLICE: the bundle holds no code for riscv64-linux-gnu
// ENDIAN: s390x-linux-gnu
// LIST: a64fx
#include <threechains/ifunc.h>

void steps_main(void *payload, size_t payload_size, void *target_args) {
  static const char text[] = "constants stand in front of the code";
  (void)target_args;
  if (payload_size > 3) tc_log(1, text);
  for (size_t i = 0; i < payload_size; ++i)
    if (((const char *)payload)[i] == 'x') tc_reply(payload, i);
}
