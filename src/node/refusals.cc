// SPDX-License-Identifier: Apache-2.0
#include "node/refusals.h"

#include <utility>

namespace tc::node {

namespace {
constexpr uint64_t second_ns = 1'000'000'000;
}

bool Refusals::record(uint64_t now_ns) noexcept {
  if (now_ns - second_began_ns_ >= second_ns) {
    second_began_ns_ = now_ns;
    said_ = 0;
  }
  if (said_ < lines_a_second) return ++said_, true;
  ++unsaid_;
  return false;
}

uint64_t Refusals::take_unsaid(uint64_t now_ns) noexcept {
  return unsaid_ != 0 && now_ns - second_began_ns_ >= second_ns ? std::exchange(unsaid_, 0) : 0;
}

}  // namespace tc::node
