// SPDX-License-Identifier: Apache-2.0
//
// Waits for events on many descriptors (epoll) and calls the watcher of each.
//
// Thread: the node's, for all calls but wake().
#pragma once

#include <sys/epoll.h>

#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace tc::transport {

class Watcher {
 public:
  // `events` as of epoll_wait(). Must not destroy another watcher: an event for it may follow in the same batch.
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

  // Calls the watchers of all descriptors that have events; returns how many. Does not wait.
  unsigned poll() noexcept;
  // The same, after waiting for the first event.
  unsigned wait(Deadline deadline) noexcept;
  // For a program that waits by itself: readable when poll() would call a watcher, or after wake().
  int descriptor() const noexcept { return epoll_.get(); }
  // Was there a wake() that poll() took in, and that no wait has ended for yet? It is forgotten.
  bool take_wake() noexcept { return std::exchange(woken_, false); }
  // Ends a wait(), now or the next one. From any thread, and from signal handlers.
  void wake() noexcept;

 private:
  unsigned dispatch(int count) noexcept;
  int wait_ns(uint64_t ns) noexcept;

  static constexpr int most_events = 64;
  Fd epoll_, wake_;
  epoll_event events_[most_events];
  bool woken_ = false;                  // a wake() was seen, and there was no wait since
  bool has_only_milliseconds_ = false;  // epoll_pwait2() is not to be had
};

}  // namespace tc::transport
