// SPDX-License-Identifier: Apache-2.0
//
// For tests: a ring in memory of this process, with both of its ends.
#pragma once

#include <atomic>

#include "transport/ring/ring.h"
#include "transport/testing/frames.h"

namespace tc::transport {

class RingPair final {
 public:
  explicit RingPair(size_t bytes) : RingPair(bytes, bytes) {}
  RingPair(size_t bytes, size_t usual) : memory(RingMemory::create(bytes).value()) {
    out.open(view, usual);
    in.open(view, usual);
  }
  // The first frame of a poll of its own: visible at once.
  bool put(uint32_t number, size_t length) {
    ++poll_state.poll_number;
    out.flush();
    return put_frame(out, number, length);
  }

  RingMemory memory;
  RingView view = memory.written_by(RingMemory::Side::creator);
  PollState poll_state;
  FlushList list{poll_state};
  RingOut out{list, [this] { ++rings; }};
  RingIn in;
  int rings = 0;  // of the doorbell
};

}  // namespace tc::transport
