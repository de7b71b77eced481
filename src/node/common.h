// SPDX-License-Identifier: Apache-2.0
//
// What every part of a node uses: its configuration, its identity, its counters, its log, the work for its next polls, the
// memory for what waits, and memory for when there is none.
//
// Thread: the node's.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/buffer_pool.h"
#include "base/memory_reserve.h"
#include "node/identity.h"
#include "wire/times.h"

namespace spdlog {
class logger;
}

namespace tc::node {

struct Config;
class CallLog;

// What a node must do with one of its next polls. The parts of the node set these flags where they notice the work, often in
// the middle of something else. Node::progress() and Node::expire() do it.
struct PendingWork {
  bool backlog = false;         // frames wait for room, answers and questions to be delivered, endpoints to be closed
  bool lost_links = false;      // a link was lost: the calls that wait on it are to fail
  bool unfinished = false;      // the last piece of a large message may never come
  bool paused_links = false;    // a link's peer has used up its rate
  bool awaits_answers = false;  // a future may have a deadline
  bool calls = false;           // calls of this node to itself wait, or calls run on other threads
};

// Calls that ended badly here, by reason.
class Failures {
 public:
  static constexpr size_t by_code = TC_ERR_CANCELED + 1;  // tc_fail()
  static constexpr size_t reasons = by_code + 1;
  void add(tc_status_t why) noexcept { ++counts_[std::min<size_t>(static_cast<size_t>(why), by_code)]; }
  void add_code() noexcept { ++counts_[by_code]; }
  uint64_t all() const noexcept;
  // Of those that there were: "denied". In statistics.cc, as the other names are.
  std::vector<std::pair<std::string, uint64_t>> by_reason() const;

 private:
  std::array<uint64_t, reasons> counts_{};
};

// What a node counts, for its statistics (Node::stat).
struct Counters {
  uint64_t code_bytes_sent = 0;
  uint64_t needs = 0;
  uint64_t slice_requests = 0;
  uint64_t compile_requests = 0;
  uint64_t compiled_for_others = 0;
  Failures failures;
  uint64_t cell_calls = 0;
  uint64_t cell_deaths = 0;
  uint64_t cell_data_waits = 0;
  uint64_t dropped_links = 0;
  uint64_t refused_peers = 0;
  uint64_t denied_codes = 0;
  uint64_t throttled = 0;
  uint64_t late_answers = 0;
  uint64_t first_execution_ns = 0;
  uint64_t load_ns = 0;
  wire::Times loads;       // how long check and load or compilation of never-seen code took
  wire::Times handshakes;  // and encrypted connections of peers, until they had greeted
};

struct Common {
  const Config& config;
  const Identity& self;
  PendingWork& work;
  Counters& counters;
  spdlog::logger& log;
  CallLog& call_log;
  MemoryReserve& reserve;
  BufferPool& buffers;

  // Counts bytes that wait at this node against `message-memory`, and the share that a peer has in it (peer_shares.h; null:
  // as much as all peers). TC_ERR_LIMIT.
  Status charge(Charge& charge, size_t bytes, const std::shared_ptr<MemoryBudget>& share = nullptr) const {
    auto& budget = buffers.budget();
    if (charge.take(budget, bytes, share)) return {};
    if (share != nullptr && share->used() + bytes > share->limit())
      return fail(
          TC_ERR_LIMIT,
          "{} bytes of messages of one key wait at {}, {} more are wanted, and {} is its share of message-memory",
          share->used(), self.label, bytes, share->limit());
    return fail(TC_ERR_LIMIT,
                "{} bytes of messages wait at {}, {} more are wanted, and {} is the limit (message-memory)",
                budget.used(), self.label, bytes, budget.limit());
  }
};

}  // namespace tc::node
