// SPDX-License-Identifier: Apache-2.0
//
// Which executions may still be inside code that was replaced, as any thread may run any code at any time. Executions are counted in one of two phases; the thread that replaces code begins the other phase, and frees the
// old code once the phase before has run out. A steady stream of executions never holds that up, as it would if they
// were counted together.
//
//   reader                                     writer, one at a time
//     phase = enter()                            store the new entry point
//     load the entry point, call it              begin()
//     leave(phase)                               later: is_over()? free the old code, end()
//
// An execution that is counted in the new phase entered after begin(), and so sees the new entry point. One grace period
// at a time: begin() again only after end().
//
// Threads: enter() and leave() any; the rest one at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace tc::ucp {

class Executions {
 public:
  // The phase, to be given to leave().
  unsigned enter() noexcept {
    while (true) {
      const unsigned phase = phase_.load();
      counts_[phase].number.fetch_add(1);
      if (phase_.load() == phase) return phase;  // else begin() may have missed us
      counts_[phase].number.fetch_sub(1);
    }
  }
  void leave(unsigned phase) noexcept { counts_[phase].number.fetch_sub(1); }

  // From now on, executions that were inside before are waited for.
  void begin() noexcept {
    phase_.store(1 - phase_.load(std::memory_order_relaxed));
    waiting_.store(true);
  }
  bool is_over() const noexcept { return waiting_.load() && counts_[1 - phase_.load()].number.load() == 0; }
  void end() noexcept { waiting_.store(false); }
  bool waiting() const noexcept { return waiting_.load(); }

 private:
  struct alignas(64) Count {
    std::atomic<uint64_t> number{0};
  };
  std::array<Count, 2> counts_;
  std::atomic<unsigned> phase_{0};
  std::atomic<bool> waiting_{false};
};

}  // namespace tc::ucp
