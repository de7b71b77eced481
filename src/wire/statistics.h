// SPDX-License-Identifier: Apache-2.0
//
// What a node tells a peer that asks about it: which node it is, what it does now, and its statistics
// (src/node/statistics.h). Question and answer are frames of the stream; the frame's number says which one it is. A
// node has at most one question open on a link, so that neither needs a name.
//
// Threads: any; plain values.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "wire/frame.h"
#include "wire/times.h"

namespace tc::wire {

inline constexpr uint32_t statistics_question = 0;
inline constexpr uint32_t statistics_answer = 1;

// Bounds of an answer. Nodes send at most 64 KB, and leave out ifuncs and links that do not fit.
inline constexpr size_t longest_statistics_answer = 64 * 1024;
inline constexpr size_t most_statistics = 256;
inline constexpr size_t most_failures = 64;
inline constexpr size_t most_times = 32;
inline constexpr size_t most_ifuncs = 100;
inline constexpr size_t most_links = 100;
// Stands for all ifuncs that are not told one by one.
inline constexpr std::string_view other_ifuncs = "other";
inline constexpr size_t longest_statistic_name = 64;

struct IfuncReport {
  std::string name;
  uint64_t calls = 0, failures = 0;
  Times run, latency;
  bool operator==(const IfuncReport&) const = default;
};

struct LinkReport {
  std::string peer;       // label
  std::string transport;  // visible
  uint64_t calls = 0, received_bytes = 0, sent_bytes = 0, waiting_bytes = 0;
  bool operator==(const LinkReport&) const = default;
};

struct NodeReport {
  std::string name;      // label; printable, as are all texts here
  std::string version;   // of Three-Chains
  std::string running;   // the ifunc that runs now; empty: none does
  uint32_t node_id = 0;  // in its cluster; 2^32 - 1: it has none
  uint64_t uptime_ns = 0;
  bool is_draining = false;                                     // it ends, and takes no more calls
  std::vector<std::pair<std::string, uint64_t>> numbers;        // their names are visible ASCII without spaces
  std::vector<std::pair<std::string, uint64_t>> failures = {};  // by reason; names as those of numbers
  std::vector<std::pair<std::string, Times>> times = {};
  std::vector<IfuncReport> ifuncs = {};
  std::vector<LinkReport> links = {};

  // Keeps the ifuncs and links with most calls, so many of each at most. The other ifuncs are summed up.
  void keep_busiest(size_t most);
};

struct StatisticsAnswer {
  tc_status_t status = TC_OK;
  std::string message;  // readable, empty when status is TC_OK
  NodeReport report;    // empty unless status is TC_OK
};

// The question has no body. TC_ERR_MALFORMED: it has.
Status decode_statistics_question(ByteView body);
// Cuts texts to 255 bytes. `answer` has at most as much as the bounds say.
Bytes encode_statistics_answer(const StatisticsAnswer& answer);
// The same in at most so many bytes, with fewer ifuncs and links where it must be.
Bytes encode_statistics_answer(StatisticsAnswer answer, size_t most_bytes);
Result<StatisticsAnswer> decode_statistics_answer(ByteView body);

}  // namespace tc::wire
