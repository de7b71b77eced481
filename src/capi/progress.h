// SPDX-License-Identifier: Apache-2.0
//
// The progress thread: polls and sleeps, so that the application need not.
#pragma once

#include <functional>
#include <thread>

#include "capi/gate.h"

namespace tc::capi {

class Progress {
 public:
  Progress(Gate& gate, node::Node& node) : gate_(gate), node_(node) {}
  ~Progress() { (void)stop(); }

  bool runs() const noexcept { return thread_.joinable(); }
  // TC_ERR_INVALID: it runs, or this thread is inside an ifunc or a function that the node called.
  Status start();
  // TC_ERR_INVALID: this thread is inside an ifunc or a function that the node called.
  Status stop();

  // Waits, while the thread runs, until `done` or the deadline, for what a future tells. `done` is evaluated with the lock
  // held.
  bool wait_until(Deadline deadline, const std::function<bool()>& done);

 private:
  void run();
  void pause(Deadline deadline);

  Gate& gate_;
  node::Node& node_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace tc::capi
