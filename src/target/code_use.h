// SPDX-License-Identifier: Apache-2.0
//
// What all code of one name has done here, for the node's statistics. It outlives each Code, which may be freed and come again.
//
// Thread: the node's.
#pragma once

#include <cstdint>

#include "wire/times.h"

namespace tc::target {

struct CodeUse {
  uint64_t calls = 0;  // without those that Code::calls counts
  uint64_t failures = 0;
  wire::Times run;      // how long calls ran
  wire::Times latency;  // the same, with the wait for a thread or a cell

  // Calls that ran in place, which wait for nothing.
  void add_in_place(uint64_t took_ns, uint64_t times) noexcept {
    run.add(took_ns, times);
    latency.add(took_ns, times);
  }
};

}  // namespace tc::target
