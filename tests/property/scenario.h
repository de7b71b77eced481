// SPDX-License-Identifier: Apache-2.0
//
// What a seed means: how the nodes are set up, and what is done with them step by step. It depends on nothing else, so
// that a seed does the same again, as far as the system does.
//
// Thread: any one.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "journal.h"

namespace tc::property {

// SplitMix64: small, and the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) noexcept : state_(seed) {}
  uint64_t next() noexcept;
  uint64_t below(uint64_t end) noexcept { return next() % end; }
  bool one_in(uint64_t n) noexcept { return below(n) == 0; }

 private:
  uint64_t state_;
};

// What a test is asked for.
struct Wanted {
  std::string transport = "tcp";  // shm, unix, tcp, tls, ucx, ucx-put
  size_t nodes = 2;
  size_t steps = 1000;
  bool processes = false;  // each node has a process of its own, which may be killed
  bool threads = false;    // each node is driven by its own progress thread
  std::vector<std::string> leave_out;

  bool leaves_out(const std::string& what) const;
};

struct NodeSettings {
  std::vector<std::pair<std::string, std::string>> options;
  Limits limits;
  uint64_t ring_bytes = 0;
};

enum class Action : uint8_t {
  send,
  send_many,
  send_with_code,
  call,
  poll,
  sleep,  // a node that is not driven for a while
  connect,
  close,
  abandon,
  flush,
  give_up_call,
  renew_code,  // ifuncs are registered anew
  destroy,     // a node ends, and begins anew later
};

const char* name_of(Action action) noexcept;

// Random numbers for whatever the step has to choose.
struct Step {
  Action action;
  uint64_t node, peer, size, plan, ifunc, time;
};

class Scenario {
 public:
  // `stream`: each process has steps of its own.
  Scenario(const Wanted& wanted, uint64_t seed, uint64_t stream = 0);

  const NodeSettings& settings(size_t node) const { return settings_[node]; }
  Step next();
  // A size, from a step's number: small most of the time, often one that a limit of the way to `to` is near.
  uint32_t size_of(uint64_t number, size_t from, size_t to) const;

 private:
  NodeSettings choose_settings(Random& random, size_t node) const;
  void weigh(Random& random);

  const Wanted& wanted_;
  std::vector<NodeSettings> settings_;
  std::vector<std::pair<Action, uint32_t>> weights_;
  uint32_t total_ = 0;
  Random steps_;
};

}  // namespace tc::property
