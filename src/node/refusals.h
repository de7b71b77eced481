// SPDX-License-Identifier: Apache-2.0
//
// Limits how many refused connections are written to the log each second; the rest are only counted. Without a limit, a
// peer that connects again and again fills the disk of the log.
//
// Thread: the node's.
#pragma once

#include <cstdint>

namespace tc::node {

class Refusals {
 public:
  static constexpr uint32_t lines_a_second = 10;

  // May this one be logged?
  bool record(uint64_t now_ns) noexcept;
  // How many were not logged, once their second is over. Counts from 0 again.
  uint64_t take_unsaid(uint64_t now_ns) noexcept;

 private:
  uint64_t second_began_ns_ = 0;
  uint32_t said_ = 0;
  uint64_t unsaid_ = 0;
};

}  // namespace tc::node
