/* SPDX-License-Identifier: Apache-2.0
 * What the library exports, in every version: this header is the contract between its versions and its users. */
#ifndef REBIND_HASH_H
#define REBIND_HASH_H

#include <stddef.h>
#include <stdint.h>

extern const char hash_name[8];
uint64_t hash(const void* bytes, size_t size);

/* What the ifunc `digest` answers: the name of the hash function, and the hash of each quarter of the payload. */
enum { parts = 4 };
struct digest {
  char name[8];
  uint64_t hashes[parts];
};

#endif
