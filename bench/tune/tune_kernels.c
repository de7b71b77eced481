// SPDX-License-Identifier: Apache-2.0
//
// The kernels of `ifunc bench tune`: the same source as an ifunc, and compiled with -march=native on the machine that
// is measured. Arrays stay in the first-level cache, so that the code is what counts.
#include <stddef.h>

#include "work.h"

static __attribute__((noinline)) void saxpy(long n, float a, const float *restrict x, float *restrict y) {
  for (long i = 0; i < n; ++i) y[i] += a * x[i];
}

static __attribute__((noinline)) float dot(long n, const float *restrict x, const float *restrict y) {
#pragma clang fp reassociate(on)
  float sum = 0;
  for (long i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

// Where `wanted` first stands, or n: by blocks, since no compiler vectorises a loop that may end anywhere.
static __attribute__((noinline)) long search(long n, const unsigned char *text, unsigned char wanted) {
  enum { block = 256 };
  long at = 0;
  for (; at + block <= n; at += block) {
    unsigned char hit = 0;
    for (long i = 0; i < block; ++i) hit |= text[at + i] == wanted;
    if (hit) break;
  }
  for (; at < n; ++at)
    if (text[at] == wanted) return at;
  return n;
}

void tune_kernels_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  struct tune_work *const work = payload;
  for (long i = 0; i < work->times; ++i) {
    switch (work->kernel) {
      case tune_saxpy:
        saxpy(work->length, work->factor, work->x, work->y);
        break;
      case tune_dot:
        work->sum = dot(work->length, work->x, work->y);
        break;
      case tune_search:
        work->found = search(work->length, work->text, work->wanted);
        break;
      default:
        break;
    }
  }
}
