/* SPDX-License-Identifier: Apache-2.0
 * Atomics of all sizes, and the outlined helpers that compilers for aarch64 make of them. The payload needs the largest
 * alignment. Replies with the sum of what they gave, and where the payload lies behind a multiple of 4096. */
#include <threechains/ifunc.h>

TC_PAYLOAD_ALIGN(4096);

/* The importer has compilers inline atomics; other front ends may call the helpers all the same. */
#ifdef __aarch64__
uint64_t __aarch64_ldset8_relax(uint64_t bits, uint64_t *at);
#define FETCH_OR(at, bits) __aarch64_ldset8_relax(bits, at)
#else
#define FETCH_OR(at, bits) __atomic_fetch_or(at, bits, __ATOMIC_RELAXED)
#endif

static uint8_t byte;
static uint16_t half;
static uint32_t word;
static uint64_t wide;

void atomics_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  __atomic_store_n(&byte, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&half, 2, __ATOMIC_RELEASE);
  uint64_t answer[2] = {0, (uintptr_t)payload % 4096};
  answer[0] += __atomic_fetch_add(&byte, 1, __ATOMIC_SEQ_CST);  /* 1 */
  answer[0] += __atomic_exchange_n(&half, 9, __ATOMIC_ACQ_REL); /* 2 */
  __atomic_store_n(&word, 12, __ATOMIC_RELAXED);
  answer[0] += __atomic_fetch_and(&word, 4, __ATOMIC_ACQUIRE); /* 12 */
  uint64_t expected = 0;
  __atomic_store_n(&wide, 0, __ATOMIC_RELAXED);
  answer[0] += __atomic_compare_exchange_n(&wide, &expected, 5, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED); /* 1 */
  answer[0] += FETCH_OR(&wide, 2) + __atomic_load_n(&word, __ATOMIC_SEQ_CST);                           /* 5 + 4 */
  tc_reply(answer, sizeof answer);
}
