// SPDX-License-Identifier: Apache-2.0
//
// A client of `ifunc bench mixed`: one connection to the target, over which it makes long calls or small ones. Each call is
// answered. Thread: the one that measures.
#pragma once

#include <utility>

#include "base/result.h"

namespace tc::bench {

class MixedClient {
 public:
  virtual ~MixedClient() = default;

  void call_long() {
    ++called_;
    send_long();
  }
  void call_small() {
    ++called_;
    send_small();
  }
  virtual void poll() = 0;
  // As poll(), and sleeps until something comes, at most so long. It polls for a while before it sleeps, as nodes do.
  virtual void wait(uint32_t ms) = 0;

  uint64_t count() const noexcept { return answered_; }
  uint64_t called() const noexcept { return called_; }
  uint64_t in_flight() const noexcept { return called_ - answered_; }
  // The first error of a call. A call that failed has no answer, so that whoever waits for it must look here.
  const Status& status() const noexcept { return status_; }

 protected:
  virtual void send_long() = 0;
  virtual void send_small() = 0;
  void answered() noexcept { ++answered_; }
  void keep(Status status) {
    if (!status && status_) status_ = std::move(status);
  }

 private:
  uint64_t called_ = 0, answered_ = 0;
  Status status_;
};

}  // namespace tc::bench
