// SPDX-License-Identifier: Apache-2.0
// Throws, cleans up and catches, all within one ifunc; helpers in sections of their own, as templates are.
namespace {
struct Guard {
  int* count;
  ~Guard() { ++*count; }
};
}  // namespace

template <class T>
__attribute__((noinline)) int risky(T x, int* cleaned) {
  Guard guard{cleaned};
  if (x > 10) throw x;
  return static_cast<int>(x);
}

extern "C" int exception_main(int x, int* cleaned) {
  try {
    return risky(x, cleaned) + risky(static_cast<long>(x), cleaned);
  } catch (int caught) {
    return -caught;
  }
}
