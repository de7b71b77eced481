// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

#include <numeric>
#include <span>

extern "C" void dot_main(void* payload, size_t payload_size, void*) {
  const std::span<const double> all(static_cast<const double*>(payload), payload_size / sizeof(double));
  const auto a = all.first(all.size() / 2), b = all.subspan(all.size() / 2);
  const double sum = std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
  tc_reply(&sum, sizeof sum);
}
