// SPDX-License-Identifier: Apache-2.0
//
// What cannot travel from C, each with its symbol, its line, and what to do instead.
//
// RUN: %cases %s %t
// RUN: %refuses %t/unknown.c | %FileCheck %t/unknown.c
// RUN: %refuses %t/misspelt.c | %FileCheck %t/misspelt.c
// RUN: %refuses %t/variable.c | %FileCheck %t/variable.c
// RUN: %refuses %t/libc.c | %FileCheck %t/libc.c
// RUN: %refuses %t/address.c | %FileCheck %t/address.c
// RUN: %refuses %t/table.c | %FileCheck %t/table.c
// RUN: %refuses %t/local.c | %FileCheck %t/local.c
// RUN: %refuses %t/constructor.c | %FileCheck %t/constructor.c
// RUN: %refuses %t/destructor.c | %FileCheck %t/destructor.c
// RUN: %refuses %t/section.c | %FileCheck %t/section.c
// RUN: %refuses %t/assembly.c | %FileCheck %t/assembly.c
// RUN: %refuses %t/file_assembly.c | %FileCheck %t/file_assembly.c
// RUN: %refuses %t/gnu_ifunc.c --extern which | %FileCheck %t/gnu_ifunc.c
// RUN: %refuses %t/at_source.c | %FileCheck %t/at_source.c
//
// RUN: %build %t/assembly.c --allow-asm --target x86_64-linux-gnu -o %t.ifunc
// RUN: %build %t/constructor.c --allow-ctors -o %t.ifunc
// RUN: %build %t/unknown.c --extern db_insert -o %t.ifunc

//--- unknown.c
int db_insert(const void *);
void unknown_main(void *payload, unsigned long size, void *target) {
  // CHECK: unknown.c:[[#@LINE+1]]: 'db_insert' is called but neither the ifunc ABI nor a declared library defines it
  *(int *)target = db_insert(payload) + (int)size;
  // CHECK-SAME: unknown.deps{{.*}}--extern db_insert
}

//--- misspelt.c
int tc_repli(const void *, unsigned long);
void misspelt_main(void *payload, unsigned long size, void *target) {
  // CHECK: misspelt.c:[[#@LINE+1]]: 'tc_repli' is called {{.*}}did you mean 'tc_reply'?
  *(int *)target = tc_repli(payload, size);
}

//--- variable.c
extern int counter;
void variable_main(void *payload, unsigned long size, void *target) {
  // CHECK: variable.c:[[#@LINE+1]]: 'counter' is used but neither the ifunc ABI nor a declared library defines it
  *(int *)target = counter + (int)size + *(int *)payload;
}

//--- libc.c
int puts(const char *);
void libc_main(void *payload, unsigned long size, void *target) {
  // CHECK: libc.c:[[#@LINE+1]]: 'puts' is called but {{.*}}libc.deps
  *(int *)target = puts(payload) + (int)size;
}

//--- address.c
void address_main(void *payload, unsigned long size, void *target) {
  // CHECK: address.c:[[#@LINE+1]]: address 0x7f1234567890 is written into the code{{.*}}tc_data()
  *(volatile unsigned long *)0x7f1234567890 = size + *(int *)payload + *(int *)target;
}

//--- table.c
static int *const table[] = {(int *)0x7f0000001000, 0};
void table_main(void *payload, unsigned long size, void *target) {
  // CHECK: table.c:[[#@LINE+1]]: in 'table': address 0x7f0000001000 is written into the code
  *(int **)target = table[size & 1] + *(int *)payload;
}

//--- local.c
static _Thread_local int seen;
void local_main(void *payload, unsigned long size, void *target) {
  // CHECK: local.c:[[#@LINE+1]]: 'seen' is thread-local{{.*}}keep it in the payload or in the target's data
  *(int *)target = ++seen + (int)size + *(int *)payload;
}

//--- constructor.c
static int seen;
static volatile int start = 3;
__attribute__((constructor)) static void begin(void) {
  // CHECK: constructor.c:[[#@LINE+1]]: a static constructor would have to run{{.*}}initialise in constructor_main{{.*}}--allow-ctors
  seen = start;
}
void constructor_main(void *payload, unsigned long size, void *target) {
  *(int *)target = seen + (int)size + *(int *)payload;
}

//--- destructor.c
static volatile int seen;
__attribute__((destructor)) static void end(void) {
  // CHECK: destructor.c:[[#@LINE+1]]: a static destructor would have to run
  seen = 0;
}
void destructor_main(void *payload, unsigned long size, void *target) {
  *(int *)target = seen + (int)size + *(int *)payload;
}

//--- section.c
static void begin(void) { __builtin_trap(); }
__attribute__((section(".init_array"), used)) static void (*const start)(void) = begin;
// CHECK: section.c: 'start' stands in the section .init_array{{.*}}initialise in section_main
void section_main(void *payload, unsigned long size, void *target) { *(int *)target = (int)size + *(int *)payload; }

//--- assembly.c
void assembly_main(void *payload, unsigned long size, void *target) {
  // CHECK: assembly.c:[[#@LINE+1]]: inline assembly 'nop' is for one kind of CPU only{{.*}}--allow-asm
  __asm__ volatile("nop");
  *(int *)target = (int)size + *(int *)payload;
}

//--- file_assembly.c
__asm__(".globl x\nx: .long 0\n");
// CHECK: file_assembly.c: assembly at file scope{{.*}}--allow-asm
void file_assembly_main(void *payload, unsigned long size, void *target) {
  *(int *)target = (int)size + *(int *)payload;
}

//--- gnu_ifunc.c
int which(void);
static int one(void) { return which(); }
static int two(void) { return 2 * which(); }
static void *pick(void) { return which() ? (void *)one : (void *)two; }
int chosen(void) __attribute__((ifunc("pick")));
// CHECK: gnu_ifunc.c: 'chosen' is resolved by a function at load time (GNU ifunc)
void gnu_ifunc_main(void *payload, unsigned long size, void *target) {
  *(int *)target = chosen() + (int)size + *(int *)payload;
}

//--- at_source.c
#include <threechains/ifunc.h>
size_t at_source_payload_bound(void *args, size_t size) {
  // CHECK: at_source.c:[[#@LINE+1]]: 'tc_log' is called at the source
  tc_log(1, args);
  return size;
}
int at_source_payload_init(void *args, size_t size, void *payload, size_t *payload_size) {
  *payload_size = size;
  return args == payload;
}
void at_source_main(void *payload, size_t size, void *target) { *(size_t *)target = size + *(int *)payload; }
