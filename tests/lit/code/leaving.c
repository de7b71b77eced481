// SPDX-License-Identifier: Apache-2.0
//
// A failure in the entry, or in what is inlined there, costs a call of tc_fail() where it happens and nothing elsewhere;
// only a function that stays a function needs the byte that says so, and asks once where it is.
//
// RUN: %build %s --name inlined -o %t-inlined.ifunc
// RUN: %asm-x86 %t-inlined.ifunc | %FileCheck %s --check-prefix=INLINED
// RUN: %build %s --name apart -o %t-apart.ifunc
// RUN: %asm-x86 %t-apart.ifunc | %FileCheck %s --check-prefix=APART
//
// INLINED: ifunc_main:
// INLINED-NOT: movb
// INLINED: movl $0xfffffffe, %edi
// INLINED-NOT: movb
//
// APART: callq *
// APART: movb $0x0, (%rax)
// APART: callq 0x
// APART: cmpb $0x0, (%r
// APART: movb $0x1, (%rax)
#include <threechains/ifunc.h>

__attribute__((noreturn)) void abort(void);

static uint64_t checked(const uint64_t *at, size_t size) {
  if (size < 8) abort();
  return *at;
}

void inlined_main(void *payload, size_t payload_size, void *target_args) {
  *(uint64_t *)target_args += checked(payload, payload_size);
}

__attribute__((noinline)) static uint64_t checked_apart(const uint64_t *at, size_t size) {
  if (size < 8) abort();
  return at[0] + at[size / 8 - 1];
}

void apart_main(void *payload, size_t payload_size, void *target_args) {
  *(uint64_t *)target_args += checked_apart(payload, payload_size);
}
