// SPDX-License-Identifier: Apache-2.0
//
// What happens in a simulated cluster, made from a seed before it begins: so that parts of it can be left out, and the rest
// stays what it was.
//
// Thread: one; plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tc::simulation {

struct Event {
  enum class Kind : uint8_t {
    call,        // `node` calls `other`
    cut,         // connections of the two are lost, at any byte
    block,       // what `node` sends to `other` is held up for a while: one way
    partition,   // the same, between the nodes of `route` and all others, both ways
    crash,       // the node is gone without a word, with all its memory; another one comes in its place after a while
    leave,       // the node ends in good order, and another one comes in its place
    pause,       // the node gets no CPU for a while
    swap,        // from now on the node has other code under the name
    drop_code,   // the node frees the code that it can
    flush,       // `node` waits until `other` has run what it was sent
    wall_clock,  // is set
    keyring,     // `node` gives the key of `other` rights, or takes them away
    mischief,    // somebody whose code may run nowhere connects to `node`, and sends it what it likes
    library,     // `node` sends `other` one of two versions of a library
    use,         // `node` calls at `other` what uses that library
    cancel,      // `node` takes back calls that it waits for
    no_memory,   // some of the next allocations of the node fail (memory.h)
  };
  Kind kind = Kind::call;
  uint64_t at_ns = 0;  // from the beginning
  uint32_t node = 0, other = 0;
  uint64_t for_ns = 0;  // how long it lasts; of a call, its deadline
  uint64_t seed = 0;    // for what is thrown on the way
  // Of a call:
  bool wants_answer = false;
  uint32_t end = 0, injections = 0;
  size_t filler = 0;
  std::vector<uint8_t> route{};
};

struct PlanOptions {
  uint32_t nodes = 3;
  uint32_t steps = 2000;
};

// What a keyring says about a key.
enum class Leave : uint8_t { any, none, revoked, gone };
// Of an event `keyring`, and in the words of a line.
Leave leave_of(const Event& event);
std::string_view words_of(Leave leave);
// Of an event `library`: 1 or 2.
inline int library_version_of(const Event& event) { return 1 + static_cast<int>(event.seed % 2); }

std::vector<Event> make_plan(uint64_t seed, const PlanOptions& options);
// A sentence.
std::string words_of(const Event& event);

}  // namespace tc::simulation
