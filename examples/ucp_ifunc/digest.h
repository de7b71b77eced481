/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DIGEST_H
#define DIGEST_H

#include <stddef.h>
#include <stdint.h>

/* The target args of the digest ifunc. */
struct digest {
  uint64_t count; /* of calls */
  uint64_t size;  /* of the text */
  int failed;
  unsigned char sha256[32];
};

#endif
