// SPDX-License-Identifier: Apache-2.0
//
// One generic bundle: an atomic increment is one instruction where the CPU has it (Arm's LSE, x86), a loop where it
// has not, and never a call to outlined atomics that nobody at the target would resolve.
//
// RUN: %build %s --name add -o %t.ifunc
// RUN: %asm-arm %t.ifunc | %FileCheck %s --check-prefix=LOOP
// RUN: %asm-arm --cpu cortex-a72 %t.ifunc | %FileCheck %s --check-prefix=LOOP
// RUN: %asm-arm --cpu a64fx %t.ifunc | %FileCheck %s --check-prefix=LSE
// RUN: %asm-arm --cpu neoverse-n1 %t.ifunc | %FileCheck %s --check-prefix=LSE
// RUN: %asm-x86 %t.ifunc | %FileCheck %s --check-prefix=X86
// RUN: %asm-x86 --cpu znver3 %t.ifunc | %FileCheck %s --check-prefix=X86
//
// LOOP-LABEL: ifunc_main:
// LOOP-NOT: {{ldadd|__aarch64}}
// LOOP: ldaxr
// LOOP: stlxr
// LOOP-NOT: {{ldadd|__aarch64}}
//
// LSE-LABEL: ifunc_main:
// LSE-NOT: {{ldaxr|stlxr|__aarch64}}
// LSE: ldaddal
// LSE-NOT: {{ldaxr|stlxr|__aarch64}}
//
// X86-LABEL: ifunc_main:
// X86: lock
// X86: addq
#include <threechains/ifunc.h>

void add_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size;
  __atomic_fetch_add((uint64_t *)target_args, *(const uint64_t *)payload, __ATOMIC_SEQ_CST);
}
