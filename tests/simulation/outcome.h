// SPDX-License-Identifier: Apache-2.0
//
// How a simulated cluster ended.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "simulation/books.h"

namespace tc::simulation {

struct Outcome {
  Status status;
  uint64_t hash = 0, turns = 0, failed_allocations = 0;
  Books::Sums sums;
};

// That of `simulate`, which runs in a process of its own: one that crashes has failed.
Outcome outcome_in_child(const std::function<Outcome()>& simulate);

}  // namespace tc::simulation
