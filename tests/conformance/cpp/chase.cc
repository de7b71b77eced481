// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

extern "C" void chase_main(void* payload, size_t, void*) {
  struct Chase {
    uint64_t at, steps;
  };
  auto [at, steps] = *static_cast<const Chase*>(payload);
  const auto* const table = static_cast<const uint64_t*>(tc_data("table", nullptr));
  while (steps-- > 0) at = table[at];
  tc_reply(&at, sizeof at);
}
