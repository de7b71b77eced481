// SPDX-License-Identifier: Apache-2.0
//
// The books of a simulated cluster: which calls were made, where they ran, and how they ended. What may never be is an error.
//
// Thread: one.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/function_ref.h"
#include "base/result.h"
#include "node/future.h"
#include "simulation/keyrings.h"
#include "simulation/plan.h"
#include "story.h"

namespace tc::simulation {

// A node from its start to its end.
struct Life {
  uint32_t node = 0, number = 0;
  auto operator<=>(const Life&) const = default;
};

class Books {
 public:
  struct Run {
    uint32_t step;
    Life life;
    uint64_t at_ns;
  };
  struct Call {
    const Event* event = nullptr;
    Life from;
    uint64_t link = 0;  // its number at the caller
    uint16_t version = 0;
    bool accepted = false, is_checked = false;
    uint64_t due_ns = 0;
    std::shared_ptr<node::Future> future;  // null: nobody waits
    std::vector<Run> runs;
  };

  Books(size_t events, const Keyrings& keyrings) : calls_(events), keyrings_(keyrings) {}

  static uint64_t number_of(size_t event) noexcept { return event + 1; }
  Call& call(size_t event) { return calls_[event]; }
  // The node has accepted it, or not.
  void record(size_t event, Call call);
  // What a node wrote into its journal.
  Status ran(const Life& life, const story_entry& entry, uint64_t at_ns);
  // Looks at the calls that have ended. `resumed_ns`: when each node got its CPU back last.
  Status settle(uint64_t now_ns, const std::vector<uint64_t>& resumed_ns);
  // Shows the calls for whose answers that node waits.
  void each_open(const Life& life, FunctionRef<void(node::Future&)> show) const;
  // That node is gone: nobody there waits any more.
  void forget(const Life& life);
  // How many answers came to it for which nobody waited: at most one for each call that had ended without, in this life or an
  // earlier one, for each one that its earlier lives left behind, and for `others` that are not in these books.
  Status came_late(const Life& life, uint64_t answers, uint64_t others) const;
  // A flush of that link has ended.
  Status flushed(const Life& from, uint64_t link, bool well);
  size_t open() const noexcept { return open_.size(); }
  std::string words_of_open() const;

  struct Sums {
    uint64_t accepted = 0, refused = 0, runs = 0, answered = 0, failed = 0;
    Sums& operator+=(const Sums& other) noexcept;
  };
  const Sums& sums() const noexcept { return sums_; }
  uint64_t hash() const noexcept { return hash_; }

 private:
  Status check_leave(const Call& call, size_t event, const story_entry& entry, uint32_t at) const;
  Status check_order(const Call& call, size_t event, const Life& at);
  Status check_end(Call& call, size_t event, uint64_t now_ns, uint64_t resumed_ns);
  void mix(uint64_t value) noexcept { hash_ = (hash_ ^ value) * 0x100000001b3; }

  std::vector<Call> calls_;  // by event
  const Keyrings& keyrings_;
  std::map<Life, uint64_t> ended_without_answer_;
  std::map<uint32_t, uint64_t> left_behind_;  // by node
  std::vector<size_t> open_;                  // somebody waits for them
  std::map<uint64_t, uint32_t> injected_;     // by number: how often they ran
  // The last of them that ran: from whom, by which link, where.
  std::map<std::tuple<Life, uint64_t, Life>, size_t> last_;
  uint64_t hash_ = 0xcbf29ce484222325;
  Sums sums_;
};

}  // namespace tc::simulation
