// SPDX-License-Identifier: Apache-2.0
//
// What this process has of what nodes take: when a cluster has ended, it is what it was before.
//
// Thread: one.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace tc::simulation {

struct Remains {
  uint64_t allocations = 0;  // of operator new
  uint64_t descriptors = 0;
  uint64_t code_mappings = 0;  // mappings whose memory is executable

  static Remains now();
  // An error: `later` is not what this is.
  Status check(const Remains& later) const;
};

}  // namespace tc::simulation
