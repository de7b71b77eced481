// SPDX-License-Identifier: Apache-2.0
//
// What a node tells a peer that asks about it: which node it is, what it does now, and its statistics
// (src/node/statistics.h). Question and answer are frames of the stream; the frame's number says which one it is. A
// node has at most one question open on a link, so that neither needs a name.
//
// Threads: any; plain values.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "wire/frame.h"

namespace tc::wire {

inline constexpr uint32_t statistics_question = 0;
inline constexpr uint32_t statistics_answer = 1;

// Bounds of an answer, which is 20 KB with all of it.
inline constexpr size_t most_statistics = 256;
inline constexpr size_t longest_statistic_name = 64;

struct NodeReport {
  std::string name;      // label; printable, as are all texts here
  std::string version;   // of Three-Chains
  std::string running;   // the ifunc that runs now; empty: none does
  uint32_t node_id = 0;  // in its cluster; 2^32 - 1: it has none
  uint64_t uptime_ns = 0;
  bool is_draining = false;                               // it ends, and takes no more calls
  std::vector<std::pair<std::string, uint64_t>> numbers;  // their names are visible ASCII without spaces
};

struct StatisticsAnswer {
  tc_status_t status = TC_OK;
  std::string message;  // readable, empty when status is TC_OK
  NodeReport report;    // empty unless status is TC_OK
};

// The question has no body. TC_ERR_MALFORMED: it has.
Status decode_statistics_question(ByteView body);
// Cuts texts to 255 bytes. `answer` has at most most_statistics numbers.
Bytes encode_statistics_answer(const StatisticsAnswer& answer);
Result<StatisticsAnswer> decode_statistics_answer(ByteView body);

}  // namespace tc::wire
