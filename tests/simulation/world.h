// SPDX-License-Identifier: Apache-2.0
//
// A cluster in one thread: nodes on a simulated network, and the clock that jumps when none of them has work.
//
// Thread: one.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/node.h"
#include "simulation/books.h"
#include "simulation/environment.h"
#include "simulation/keyrings.h"
#include "simulation/libraries.h"
#include "simulation/memory.h"
#include "simulation/plan.h"
#include "simulation/schedule.h"
#include "simulation/stranger.h"
#include "transport/testing/simulated/simulated.h"

namespace tc::simulation {

// What the nodes send.
struct Code {
  static Result<Code> load();
  std::vector<Bundle> stories;    // two versions of the ifunc `story`
  std::vector<Bundle> libraries;  // two versions of the library `greeting`
  Bundle user;                    // uses that library
};

class World {
 public:
  World(uint64_t seed, uint32_t nodes, const Code& code, const std::vector<Event>& plan);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Everything that is to happen, until nothing moves any more. An error: what may never be, was.
  Status run();
  const Books& books() const noexcept { return books_; }
  uint64_t turns() const noexcept { return turns_; }

 private:
  struct Member {
    std::unique_ptr<node::Node> node;  // null: it is not there
    std::shared_ptr<source::Ifunc> story;
    uint32_t life = 0;
    uint16_t version = 1;
    uint64_t skew_ns = 0;
    uint64_t back_at_ns = 0;  // while it is not there
    uint64_t paused_until_ns = 0;
    Shortage shortage{};
    bool has_work = true;  // what came, or what its application did, has not been seen
    story_journal journal{};
  };
  // One direction between two nodes.
  struct Path {
    uint64_t latency_ns = 0, ns_per_kib = 0, jitter_ns = 0, blocked_until_ns = 0;
  };

  Life life_of(uint32_t number) const { return {number, members_[number].life}; }
  Path& path(uint32_t from, uint32_t to) { return paths_[from * addresses_.size() + to]; }
  bool is_awake(const Member& member) const;
  uint64_t arrival(std::string_view from, std::string_view to, size_t bytes);

  Status start(uint32_t number);
  Status make_node(Member& member, node::Config config);
  Status register_story(Member& member);
  Status swap_story(Member& member);
  void end(uint32_t number);
  Status check_late_answers(uint32_t number);
  Status happen(size_t index);
  Status call(size_t index);
  Status send(Member& member, const Event& event, const Bytes& payload, Books::Call& call);
  Status flush(const Event& event);
  void cancel(const Event& event);
  void block(const Event& event);
  void part(const Event& event);
  void crash(const Event& event);
  void drop_code(const Event& event);
  Status set_keyring(const Event& event);
  Status send_library(size_t index);
  Status use_library(size_t index);
  Status call_library(size_t index, const Bundle& bundle, Libraries::Call call);

  Status run_until(uint64_t time_ns);
  bool turn();
  Status look();
  void pass_time(uint64_t limit_ns);
  uint64_t next_ns() const;
  Status wait_for_the_open();
  Status balance();

  const std::vector<Event>& plan_;
  const Code& code_;
  const std::vector<std::string> addresses_;  // of the nodes, and behind them that of the stranger
  Dice dice_;
  transport::SimulatedNetwork network_;
  Keyrings keyrings_;
  Books books_;
  Libraries libraries_;
  std::optional<Stranger> stranger_;
  std::vector<Member> members_;
  std::vector<Path> paths_;
  std::vector<uint64_t> resumed_ns_;
  Schedule schedule_;
  uint64_t turns_ = 0;
  Status found_;  // in the middle of a wait
};

}  // namespace tc::simulation
