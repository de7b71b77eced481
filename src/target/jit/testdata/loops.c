// SPDX-License-Identifier: Apache-2.0
// The loops that a wide vector unit pays for.
void saxpy(float a, const float *restrict x, float *restrict y, long n) {
  for (long i = 0; i < n; ++i) y[i] += a * x[i];
}
float dot(const float *restrict x, const float *restrict y, long n) {
#pragma clang fp reassociate(on)
  float sum = 0;
  for (long i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}
