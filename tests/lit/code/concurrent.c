// SPDX-License-Identifier: Apache-2.0
//
// TC_CONCURRENT becomes a word of the manifest, in every form of a bundle, and nothing of it is left in the code.
//
// RUN: %cases %s %t
// RUN: %build %t/lookup.c -o %t.ifunc
// RUN: %ifunc inspect %t.ifunc | %FileCheck %s --check-prefix=TEXT
// RUN: %ifunc inspect --json %t.ifunc | %FileCheck %s --check-prefix=JSON
// RUN: %asm-x86 %t.ifunc | %FileCheck %s --check-prefix=CODE
// RUN: %build %t/lookup.c --no-bitcode -o %t.objects.ifunc
// RUN: %ifunc inspect --json %t.objects.ifunc | %FileCheck %s --check-prefix=JSON
// RUN: %build %t/ordinary.c -o %t.ordinary.ifunc
// RUN: %ifunc inspect %t.ordinary.ifunc | %FileCheck %s --check-prefix=ORDINARY
// RUN: %ifunc inspect --json %t.ordinary.ifunc | %FileCheck %s --check-prefix=NOT-SAID
// RUN: %refuses %t/library.c --library | %FileCheck %t/library.c
// RUN: %refuses %t/constructor.cc --allow-ctors | %FileCheck %t/constructor.cc
// RUN: %refuses %t/other.c | %FileCheck %t/other.c
//
// TEXT: entries {{.*}}lookup_main
// TEXT: concurrent {{.*}}yes
// JSON: "concurrent": true
// ORDINARY-NOT: concurrent
// NOT-SAID: "concurrent": false
// CODE-LABEL: ifunc_main:
// CODE-NOT: tc_concurrent

//--- lookup.c
#include <threechains/ifunc.h>
TC_CONCURRENT;
void lookup_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  tc_reply(payload, payload_size);
}

//--- ordinary.c
#include <threechains/ifunc.h>
void ordinary_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  tc_reply(payload, payload_size);
}

//--- library.c
#include <threechains/ifunc.h>
// CHECK: library.c: a library cannot be TC_CONCURRENT, because its functions run in calls of the ifuncs that use it
TC_CONCURRENT;
int twice(int number) { return 2 * number; }

//--- constructor.cc
#include <threechains/ifunc.h>
// CHECK: constructor.cc: TC_CONCURRENT code cannot have static constructors
TC_CONCURRENT;
static unsigned here = tc_id();
extern "C" void constructor_main(void *, size_t, void *) { tc_reply(&here, sizeof here); }

//--- other.c
#include <threechains/ifunc.h>
// CHECK: other.c: defines 'tc_concurrent' as 7 when TC_CONCURRENT defines it as 1
const unsigned tc_concurrent = 7;
void other_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  tc_reply(payload, payload_size);
}
