// SPDX-License-Identifier: Apache-2.0
//
// From bytes to frames to running code: the hot path of a target (main paper, III.D). It runs plain calls of loaded
// code and hands every other frame to a FrameHandler. It never blocks or locks, and allocates nothing by itself.
//
// Thread: the node's.
#pragma once

#include <array>
#include <vector>

#include "target/executor.h"
#include "transport/stream.h"

namespace tc::target {

// The code behind each number in one link's frames. The source hands numbers out densely, as HPACK does. The limit
// stops a peer from making this node reserve memory for numbers that it never uses.
class NumberTable {
 public:
  static constexpr uint32_t limit = 1u << 20;

  Code* find(uint32_t number) const noexcept {
    if (number < few) [[likely]]
      return first_[number];
    return number < codes_.size() ? codes_[number] : nullptr;
  }
  // TC_ERR_LIMIT for a number out of bounds.
  Status bind(uint32_t number, Code& code);
  // The code is about to be freed.
  void forget(const Code& code) noexcept;

 private:
  // Most peers call few ifuncs: theirs are found without one more cache line.
  static constexpr uint32_t few = 3;
  std::array<Code*, few> first_{};
  std::vector<Code*> codes_;  // by number; without the first ones
};

// The cold half: every frame that is not a plain call of loaded code.
class FrameHandler {
 public:
  // `body` is `header.length` bytes, valid and writable until the stream is released; it lies in memory that the
  // peer may still write to, so it is copied before it is checked. False: the link is to be dropped; nothing more
  // is read from it. May throw std::bad_alloc.
  virtual bool on_frame(const wire::FrameHeader& header, std::byte* body) = 0;
  // The code of numbers that may run at once. Asked for anew after each on_frame(): a call may wait for its code since,
  // and no other may overtake it.
  virtual const NumberTable& numbers() const noexcept = 0;
  // The call that just ran has effects: its ifunc replied, failed, forwarded ...
  virtual void on_effects() = 0;
  // The peer breaks the rules of framing; `what` has the values.
  virtual void on_broken(std::string what) = 0;

 protected:
  ~FrameHandler() = default;
};

// Takes up to `most` frames off `in`, as long as the turn lasts (time_slice.h), with `numbers` of the handler to begin with.
// Returns how many; 0 is "nothing there".
// Their memory goes back to the sender on the way, so that it can write while we read. Calls of more than `longest_call`
// bytes are the handler's. Throws what the handler throws.
size_t receive(transport::InStream& in, const NumberTable& numbers, Executor& executor, FrameHandler& handler,
               size_t most, size_t longest_call);

}  // namespace tc::target
