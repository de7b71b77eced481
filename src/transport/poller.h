// SPDX-License-Identifier: Apache-2.0
//
// Waits on many descriptors (epoll) and tells whoever watches one that it has something to say.
//
// Thread: the node's, but for wake().
#pragma once

#include <sys/epoll.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace tc::transport {

class Watcher {
 public:
  // `events` as of epoll_wait(). Must not destroy another watcher that was added before.
  virtual void on_ready(uint32_t events) noexcept = 0;

 protected:
  ~Watcher() = default;
};

class Poller {
 public:
  Status open();

  // `watcher` must stay until remove().
  Status add(int fd, Watcher& watcher, uint32_t events);
  Status add(const Fd& fd, Watcher& watcher, uint32_t events) { return add(fd.get(), watcher, events); }
  void change(const Fd& fd, Watcher& watcher, uint32_t events) noexcept;
  void remove(const Fd& fd) noexcept;

  // Tells watchers what their descriptors have to say; returns how many were told. Does not wait.
  unsigned poll() noexcept;
  // Waits for one to have something to say, and tells it.
  unsigned wait(Deadline deadline) noexcept;
  // Ends a wait, now or the next one. Any thread; signal handlers.
  void wake() noexcept;

 private:
  unsigned tell(int count) noexcept;
  int wait_ns(uint64_t ns) noexcept;

  static constexpr int most_events = 64;
  Fd epoll_, wake_;
  epoll_event events_[most_events];
  bool woken_ = false;   // and nobody has waited since
  bool coarse_ = false;  // the kernel (or its emulation) waits in milliseconds only
};

}  // namespace tc::transport
