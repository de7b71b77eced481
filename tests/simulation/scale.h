// SPDX-License-Identifier: Apache-2.0
//
// Many small nodes in one thread: a broadcast and pointer chases through all of them, and what that takes. Each node has a
// time of its own, as if it had a core of its own; the node that has something to do first goes on first.
//
// Thread: one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "node/node.h"
#include "simulation/schedule.h"
#include "transport/testing/simulated/simulated.h"
#include "wire/bundle.h"

namespace tc::simulation {

struct ScaleOptions {
  uint32_t nodes = 1000;
  uint32_t entries = 8;  // of the chase's table, at each node
  uint32_t chases = 100;
  uint32_t depth = 1000;
  uint64_t seed = 1;
  uint64_t trip_ns = 2000;  // what a frame travels
};

class Scale {
 public:
  explicit Scale(const ScaleOptions& options);
  ~Scale();
  Scale(const Scale&) = delete;
  Scale& operator=(const Scale&) = delete;

  // Prints what each part took. An error: an answer is wrong, or a node did not run what it should have, once.
  Status run();
  // Of everything that happened and when: the same for the same options.
  uint64_t hash() const noexcept { return hash_; }

 private:
  struct Member {
    std::unique_ptr<node::Node> node;
    uint64_t time_ns = 0;    // its own
    uint64_t looked_ns = 0;  // what came until then was seen
    uint32_t visits = 0;     // of the broadcast
  };
  struct Chase {
    uint64_t start = 0, end = 0;  // addresses
    uint64_t trips = 0;           // by the way that the table makes it go
    std::shared_ptr<node::Future> future;
  };
  // What the cluster has used so far.
  struct Used {
    uint64_t time_ns = 0, turns = 0, links = 0, bytes = 0;
    double seconds = 0;
  };

  uint32_t client() const noexcept { return options_.nodes; }
  Status start();
  Status start(uint32_t number);
  Status broadcast(const char* what);
  Status chase(const char* what, uint32_t count);
  Result<Chase> begin_chase(uint32_t index);
  static Status check(const Chase& chase);
  Status run_until(const std::function<bool()>& done);
  void turn(uint32_t number, uint64_t at_ns);
  void enter(uint32_t number, uint64_t at_ns);
  void leave(uint32_t number);
  Status check_visits(uint32_t expected) const;
  Used used();
  void tell(const char* what, const Used& before, uint64_t trips, uint64_t all);

  const ScaleOptions options_;
  transport::SimulatedNetwork network_;
  Schedule schedule_;
  std::vector<Member> members_;  // the last one is the client
  std::vector<uint64_t> table_;
  std::shared_ptr<source::Ifunc> broadcast_, chaser_;
  uint64_t end_ns_ = 0;  // the latest time of a node
  uint64_t turns_ = 0, hash_ = 0;
};

}  // namespace tc::simulation
