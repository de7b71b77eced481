/* SPDX-License-Identifier: Apache-2.0
 *
 * The payload of the ifunc `broadcast`: for the simulated cluster (tests/simulation).
 */
#ifndef TC_TESTS_BROADCAST_H
#define TC_TESTS_BROADCAST_H

#include <stdint.h>

/* What each node exposes: a uint32_t that counts how often it was there. */
#define BROADCAST_VISITS "visits"

struct broadcast {
  uint32_t count; /* it is for so many nodes, from this one on */
};

#endif
