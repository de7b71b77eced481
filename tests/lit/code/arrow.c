// SPDX-License-Identifier: Apache-2.0
//
// <threechains/arrow.h> is a header alone: what it makes of a column asks the node for the data, and calls nothing else. The loop
// over the rows is as over any other array.
//
// RUN: %build %s -o %t.ifunc
// RUN: %ifunc inspect %t.ifunc | %FileCheck %s --check-prefix=IMPORTS
// RUN: %asm-x86 --cpu x86-64-v3 %t.ifunc | %FileCheck %s --check-prefix=CODE
//
// IMPORTS: undefined tc_data tc_fail tc_reply{{$}}
// CODE-LABEL: ifunc_main:
// CODE: tc_data
// CODE: tc_data
// CODE: vpaddq {{.*}}%ymm
// CODE: tc_reply

#include <threechains/arrow.h>

void arrow_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size, (void)target_args;
  tc_arrow_column_t column;
  if (tc_arrow_column("trips.stops", &column) != TC_OK) {
    tc_fail(1, "no stops");
    return;
  }
  const int64_t *values = (const int64_t *)column.array.buffers[1];
  int64_t total = 0;
  for (int64_t i = 0; i < column.array.length; ++i) total += values[i];
  tc_reply(&total, sizeof total);
}
