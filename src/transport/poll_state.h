// SPDX-License-Identifier: Apache-2.0
//
// What a node and the streams of its transport share, so that neither has to call the other in each poll.
//
// Thread: the node's.
#pragma once

#include <cstdint>

namespace tc::transport {

struct PollState {
  uint64_t poll_number = 1;  // the node counts it up with every poll: frames of one poll may leave together
  bool gathering = false;    // the node runs frames: what they send leaves at the end of the poll
  bool urgent = true;        // the transport needs progress() in each poll, not only now and then
};

}  // namespace tc::transport
