// SPDX-License-Identifier: Apache-2.0
//
// What a node counts, for its statistics (Node::stat).
//
// Thread: the node's.
#pragma once

#include <cstdint>

namespace tc::node {

struct Counters {
  uint64_t code_bytes_sent = 0;
  uint64_t needs = 0;
  uint64_t slice_requests = 0;
  uint64_t compile_requests = 0;
  uint64_t compiled_for_others = 0;
  uint64_t failures = 0;
  uint64_t dropped_links = 0;
  uint64_t refused_peers = 0;
  uint64_t denied_codes = 0;
  uint64_t throttled = 0;
  uint64_t late_answers = 0;
  uint64_t first_execution_ns = 0;
  uint64_t load_ns = 0;
};

}  // namespace tc::node
