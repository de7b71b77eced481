/* SPDX-License-Identifier: Apache-2.0
 *
 * What `ifunc bench tune` gives its kernels to do. */
#pragma once

enum { tune_saxpy = 0, tune_dot = 1, tune_search = 2 };

struct tune_work {
  int kernel;
  long times;  /* how often, one after the other */
  long length; /* elements, or bytes */
  float factor;
  const float* x;
  float* y;
  const unsigned char* text;
  unsigned char wanted;
  float sum;  /* of the last dot */
  long found; /* where the last search ended */
};
