/* SPDX-License-Identifier: Apache-2.0 */
/* What the reading ifunc and the Active Message's handler both do: the same code, so that only the ways differ. */
#ifndef TC_BENCH_READER_H
#define TC_BENCH_READER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void read_and_count(const void* payload, size_t size, void* count) {
  const uint64_t* words = (const uint64_t*)payload;
  uint64_t sum = 0;
  for (size_t i = 0; i < size / 8; ++i) sum += words[i];
  /* The bytes are ones: the sum is never that. */
  volatile uint64_t* const counted = (volatile uint64_t*)count;
  *counted = *counted + (sum == 42 ? 2 : 1);
}

#endif
