/* SPDX-License-Identifier: Apache-2.0
 * Version 1 of the library: FNV-1a, a byte at a time. */
#include "hash.h"

const char hash_name[8] = "fnv1a";

uint64_t hash(const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  uint64_t value = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) value = (value ^ at[i]) * 0x100000001b3;
  return value;
}
