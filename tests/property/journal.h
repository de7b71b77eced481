// SPDX-License-Identifier: Apache-2.0
//
// What the nodes of a property test did, written down as they did it: what each accepted for sending, what ran at each,
// and when endpoints and nodes began and ended. It lies in memory that processes share and that stays when one of them is
// killed. check.h says whether it adds up.
//
// Thread: each node's log is written by whoever drives the node, and `runs` by the ifuncs that run there.
#pragma once

#include <threechains/threechains.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

extern "C" {
#include "witness.h"
}

namespace tc::property {

inline constexpr size_t most_nodes = 3;
inline constexpr size_t most_messages = size_t{1} << 18, most_runs = size_t{1} << 19;  // of a node
inline constexpr size_t most_endpoints = 4096, most_lives = 1024, most_flushes = 8192;

enum class Way : uint8_t { send, send_many, with_code, call };
inline constexpr bool is_call(Way way) noexcept { return way == Way::call; }
enum class State : uint8_t { none, begun, accepted, refused };

// A message, by its number at the node that sent it first. Times are those of the common clock; 0: not yet.
struct Sent {
  uint64_t begun = 0;
  uint64_t returned = 0;  // from the function that sent it
  uint64_t told = 0;      // a call's sender learnt how it ended
  uint32_t size = 0;
  uint32_t reply_size = 0;
  uint32_t deadline_ms = 0;
  uint16_t endpoint = 0;
  uint16_t incarnation = 0;  // of the node that sent it
  State state = State::none;
  Way way = Way::send;
  uint8_t hops = 0;
  uint8_t then = WITNESS_ENDS;
  std::array<uint8_t, WITNESS_MOST_HOPS> route{};
  uint8_t status = TC_OK;  // why it was refused, or how the call ended
  bool wrong_reply = false;
  bool given_up = false;  // its future was freed before the answer came
  int32_t code = 0;       // of tc_fail()
  char why[160] = {};     // how the call ended, in words
};

enum class Ending : uint8_t { none, in_order, with_error, at_once, with_its_node };

struct EndpointLife {
  uint64_t opened = 0;
  uint64_t found_lost = 0;  // tc_endpoint_status() said so
  uint64_t ending = 0;
  uint64_t ended = 0;
  uint16_t incarnation = 0;  // of its node
  uint16_t peer_incarnation = 0;
  uint8_t peer = 0;
  Ending how = Ending::none;
  uint8_t lost_status = TC_OK;
  char why_lost[160] = {};
};

// One incarnation of a node.
struct Life {
  uint64_t began = 0;
  uint64_t ending = 0;  // its end began
  uint64_t ended = 0;
  bool killed = false;
  bool slow_end = false;  // longer than what a transport takes to send what was committed
};

struct Flushed {
  uint64_t began = 0;
  uint64_t ended = 0;
  uint32_t before = 0;  // messages of smaller numbers
  uint16_t endpoint = 0;
  uint8_t status = TC_OK;
  bool must_end = false;  // both nodes are driven all the time, and its deadline is far away
};

// The settings of a node that the check needs.
struct Limits {
  uint64_t max_message = 0;
  bool little_memory = false;  // message-memory may be used up
  bool little_code = false;    // code may be freed, and is requested again from who calls it
};

// What a process is doing.
enum class Phase : uint32_t { steps, settled };

struct NodeLog {
  std::atomic<uint32_t> messages{0}, endpoints{0}, lives{0}, flushes{0};
  std::atomic<uint32_t> steps{0};
  std::atomic<bool> listens{false};  // its first life has begun
  std::atomic<Phase> phase{Phase::steps};
  Limits limits;
  std::array<Life, most_lives> life;
  std::array<EndpointLife, most_endpoints> endpoint;
  std::array<Flushed, most_flushes> flush;
  std::array<Sent, most_messages> sent;
  // struct witness_runs, with its records.
  alignas(16) std::array<std::byte, sizeof(witness_runs) + most_runs * sizeof(witness_run)> run_memory;

  witness_runs& runs() noexcept { return *reinterpret_cast<witness_runs*>(run_memory.data()); }
  const witness_runs& runs() const noexcept { return *reinterpret_cast<const witness_runs*>(run_memory.data()); }
};

struct Journal {
  uint64_t clock = 0;
  std::atomic<bool> ends{false};  // processes may end
  std::array<NodeLog, most_nodes> node;

  uint64_t tick() noexcept { return __atomic_add_fetch(&clock, 1, __ATOMIC_SEQ_CST); }
  uint64_t now() const noexcept { return __atomic_load_n(&clock, __ATOMIC_SEQ_CST); }
};

struct UnmapJournal {
  void operator()(Journal* journal) const noexcept;
};
using JournalMemory = std::unique_ptr<Journal, UnmapJournal>;
// In memory that child processes share.
JournalMemory make_journal();

}  // namespace tc::property
