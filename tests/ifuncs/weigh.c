// SPDX-License-Identifier: Apache-2.0
//
// Adds to the data `weighed`, three numbers of 8 bytes: how many calls came, their bytes, and a sum of their payloads'
// words (src/capi/sizes_test.cc), so that a test sees whether each came once and whole.
#include <string.h>
#include <threechains/ifunc.h>

void weigh_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  size_t size = 0;
  uint64_t *weighed = tc_data("weighed", &size);
  if (!weighed || size != 3 * sizeof *weighed) return tc_fail(1, "there is no scale");
  uint64_t sum = payload_size;
  for (size_t at = 0; at < payload_size; at += sizeof(uint64_t)) {
    uint64_t word = 0;
    const size_t left = payload_size - at;
    memcpy(&word, (const char *)payload + at, left < sizeof word ? left : sizeof word);
    sum = sum * 31 + word;
  }
  weighed[0] += 1;
  weighed[1] += payload_size;
  weighed[2] += sum;
}
