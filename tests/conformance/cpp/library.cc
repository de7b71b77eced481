// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

#include <cmath>

extern "C" void library_main(void* payload, size_t, void*) {
  const auto* const sides = static_cast<const double*>(payload);
  const double longest = std::hypot(sides[0], sides[1]);
  tc_reply(&longest, sizeof longest);
}
