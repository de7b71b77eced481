// SPDX-License-Identifier: Apache-2.0
//
// How long a link may run code in one turn, and how long frames are held back behind code that runs.
//
// What calls send is held back, so that it leaves together at the end of a poll. That may wait behind code that takes
// microseconds, but not behind code that takes longer: so what was held back leaves before long code begins. And the links of
// a node share its thread: the turn of a link ends when its code has run for some 50 us. What is left stays in its ring or
// socket, where flow control reaches the sender.
//
// To read the clock costs as much as several short calls. So what a call of each code takes is learned, and short code is
// measured many calls at a time: about as many as run in 5 us. Code that is not known is treated as long. The first long call
// of code that was short before is noticed late; from then on its calls are measured one by one.
//
// Each look also tells the code's statistics (CodeUse). Where each turn has few calls there is none. So of some 64 turns one is
// sampled: its first calls are timed, and nothing is learned from that, because much of it is the clock.
//
// Thread: the node's.
#pragma once

#include <cstdint>

#include "target/code.h"

namespace tc::transport {
class Transport;
}

namespace tc::target {

class TimeSlice {
 public:
  // Whose frames are held back. Without one, nothing is.
  void use(transport::Transport& transport) noexcept { transport_ = &transport; }

  // A link's turn begins.
  void begin() noexcept {
    looked_ns_ = 0;
    calls_ = 0;
    state_ = goes_on;
    if (--turns_to_sample_ == 0) [[unlikely]]
      choose_sample();
  }
  // The link has run code for so long that others have their turn now. After each call, or each run of calls.
  bool is_over() noexcept {
    if (state_ == goes_on) [[likely]]
      return false;
    return is_over_now();
  }

  // Of a turn that is over: did its code run so long that much may have come meanwhile?
  bool was_long() const noexcept;

  // Before calls of that code. Returns how many may run before the next before(), at least one.
  uint32_t before(const Code& code) noexcept {
    if (calls_ >= code.calls_a_look) [[unlikely]]
      look_before(code);
    return code.calls_a_look > calls_ ? code.calls_a_look - calls_ : 1;
  }
  // So many have run.
  void after(Code& code, uint32_t calls) noexcept {
    calls_ += calls;
    code.calls += calls;
    last_ = &code;
  }
  // Before anything else that takes long, as compiling does.
  void before_long_work() noexcept { look(true); }
  // So many calls of that code, on whichever thread, took so long.
  static void learn(Code& code, uint64_t took_ns, uint32_t calls) noexcept;
  // The store is about to free this code.
  void forget(const Code& code) noexcept {
    if (last_ == &code) last_ = nullptr;
  }

 private:
  // As wide as calls_, so that begin() needs one store.
  enum State : uint32_t { goes_on, measures /* the call that runs is long, or not known */, samples, over };
  // In calls_: the first calls of the turn are to be sampled. More calls than run between two looks.
  static constexpr uint32_t to_sample = 1u << 31;

  void look(bool long_code_follows) noexcept;
  void look_before(const Code& code) noexcept;
  bool is_over_now() noexcept;
  void choose_sample() noexcept;
  void end_sample() noexcept;

  uint64_t looked_ns_ = 0;  // when the clock was read last in this turn; 0: not yet
  uint32_t calls_ = 0;      // since then, or since the turn began
  State state_ = goes_on;
  Code* last_ = nullptr;   // the code of the last of them; null: it was freed
  uint64_t begun_ns_ = 0;  // when the clock was read first in this turn
  transport::Transport* transport_ = nullptr;
  uint32_t turns_to_sample_ = 1;
  uint32_t random_ = 1;      // choose_sample()'s
  uint64_t sampled_ns_ = 0;  // when the sample began
};

}  // namespace tc::target
