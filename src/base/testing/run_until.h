// SPDX-License-Identifier: Apache-2.0
//
// For tests that drive everything on one thread: one step after the other until a condition holds.
#pragma once

#include "base/clock.h"

namespace tc::test {

// False when the condition does not hold in time. The condition is looked at before the first step.
template <class Condition, class Step>
bool run_until(Condition&& condition, Step&& step, uint64_t limit_ms = 5000) {
  const auto deadline = Deadline::after_ms(limit_ms);
  while (!condition()) {
    if (deadline.passed()) return false;
    step();
  }
  return true;
}

}  // namespace tc::test
