/* SPDX-License-Identifier: Apache-2.0
 * Reaches everything through the global offset table: data and functions of its own by address, functions of a library,
 * functions of the node. Replies with 100 * 7 + 1 + the cube root of 27. */
#include <threechains/ifunc.h>

#pragma comment(lib, "m")
double cbrt(double);

static uint64_t calls;
static uint64_t seven(void) { return 7; }
static uint64_t eight(void) { return 8; }
uint64_t (*volatile choices[2])(void) = {seven, eight};
static uint64_t *volatile where = &calls;

void got_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)target_args;
  *where += 1;
  const uint64_t answer = 100 * choices[payload_size]() + (*where != 0) + (uint64_t)cbrt(27.0);
  tc_reply(&answer, sizeof answer);
}
