// SPDX-License-Identifier: Apache-2.0
//
// What a cell may say at which moment, as its node sees it: it reads a message and takes it, or says which rule that
// breaks.
//
//     starting -- Ready --> idle -- begin() --> running -- Ended --> idle
//
// It knows nothing of processes and rings, so that tests/fuzz can say anything to it.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <variant>

#include "base/result.h"
#include "cell/channel.h"
#include "cell/protocol.h"

namespace tc::cell {

// The answer of the call.
struct Reply {
  ByteView bytes;
};

// What comes from a cell. Views are valid as long as the message that was read.
using Event = std::variant<Ready, Reply, Log, Ask, Ended, Mapped, Resolved>;

class Conversation {
 public:
  bool is_starting() const noexcept { return state_ == State::starting; }
  bool is_idle() const noexcept { return state_ == State::idle; }
  bool is_running() const noexcept { return state_ == State::running; }
  bool is_over() const noexcept { return state_ == State::over; }
  // Of the call that runs, or of the last one.
  uint32_t call_number() const noexcept { return call_number_; }

  // A call begins in a cell that is idle. Its number.
  uint32_t begin(bool wants_reply) noexcept;
  // The node answers what was asked; `replies`: and the call with it. False: nothing was asked.
  bool answer(bool replies) noexcept;
  // One more Mapped, or Resolved, is due.
  void await_mapped() noexcept { ++awaited_mapped_; }
  void await_resolved() noexcept { ++awaited_resolved_; }
  // TC_ERR_MALFORMED: the cell has broken a rule. Then nothing more may be read.
  Result<Event> read(const Channel::Message& message);
  void end() noexcept { state_ = State::over; }

 private:
  enum class State : uint8_t { starting, idle, running, over };
  Result<Event> read_ready(ByteView body);
  Result<Event> read_of_call(ToNode kind, const Channel::Message& message);

  State state_ = State::starting;
  uint32_t call_number_ = 0;
  bool wants_reply_ = false;
  bool is_replied_ = false;
  bool is_asked_ = false;  // and not answered yet
  size_t awaited_mapped_ = 0;
  size_t awaited_resolved_ = 0;
};

}  // namespace tc::cell
