/* SPDX-License-Identifier: Apache-2.0 */
/* What the ifunc of `ifunc bench bulk` and its target agree on. */
#pragma once

#include <stdint.h>

/* The target's arguments. */
struct carry_target {
  const void* data; /* what is replied with */
  uint64_t size;
};

/* A payload of this size asks for the first bytes of `data`, as many as it says; any other one is data itself. */
#define CARRY_REQUEST_BYTES sizeof(uint64_t)
