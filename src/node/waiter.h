// SPDX-License-Identifier: Apache-2.0
//
// How a part of a node waits for something while the node goes on: the node implements it, a test may do so too.
//
// Thread: the node's.
#pragma once

#include "base/clock.h"
#include "base/function_ref.h"

namespace tc::node {

class Waiter {
 public:
  // Not from inside the node's polling: what is waited for would have to be brought by the same polling.
  virtual bool may_wait() const noexcept = 0;
  // Polls until `done` or the deadline; true when done. The node sleeps in between, so an event must announce it.
  virtual bool wait_until(Deadline deadline, FunctionRef<bool()> done) = 0;
  // The same for what no event announces: room that a peer makes in shared memory. Tests `done` after every poll.
  virtual bool wait_for_room(Deadline deadline, FunctionRef<bool()> done) = 0;

 protected:
  ~Waiter() = default;
};

}  // namespace tc::node
