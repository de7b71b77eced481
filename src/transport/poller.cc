// SPDX-License-Identifier: Apache-2.0
#include "transport/poller.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace tc::transport {

Status Poller::open() {
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event event{EPOLLIN, {.ptr = nullptr}};
  if (!epoll_ || !wake_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
    return fail(TC_ERR_IO, "preparing to wait for events: {}", system_words(errno));
  return {};
}

Status Poller::add(int fd, Watcher& watcher, uint32_t events) {
  epoll_event event{events, {.ptr = &watcher}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    return fail(TC_ERR_IO, "watching a socket: {}", system_words(errno));
  return {};
}

void Poller::change(const Fd& fd, Watcher& watcher, uint32_t events) noexcept {
  epoll_event event{events, {.ptr = &watcher}};
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd.get(), &event);
}

void Poller::remove(const Fd& fd) noexcept {
  if (fd) (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd.get(), nullptr);
}

unsigned Poller::poll() noexcept { return dispatch(epoll_wait(epoll_.get(), events_, most_events, 0)); }

unsigned Poller::wait(Deadline deadline) noexcept {
  const auto left = deadline.remaining_ns();
  const bool was_woken = std::exchange(woken_, false);
  const auto handled = left == 0 || was_woken ? poll() : dispatch(wait_ns(left));
  woken_ = false;
  return handled;
}

int Poller::wait_ns(uint64_t ns) noexcept {
  if (!has_only_milliseconds_) {
    const timespec timeout{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
    const int count = epoll_pwait2(epoll_.get(), events_, most_events, &timeout, nullptr);
    // Old kernels and emulators do not have it, and the filters of old container runtimes refuse what they do not know.
    if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return count;
    has_only_milliseconds_ = true;
  }
  const uint64_t ms = std::min<uint64_t>(ns / 1'000'000 + 1, INT_MAX);
  return epoll_wait(epoll_.get(), events_, most_events, static_cast<int>(ms));
}

unsigned Poller::dispatch(int count) noexcept {
  unsigned handled = 0;
  for (int i = 0; i < count; ++i) {
    if (events_[i].data.ptr == nullptr) {
      uint64_t wakes = 0;
      (void)!::read(wake_.get(), &wakes, sizeof wakes);
      woken_ = true;
      continue;
    }
    ++handled;
    static_cast<Watcher*>(events_[i].data.ptr)->on_ready(events_[i].events);
  }
  return handled;
}

void Poller::wake() noexcept {
  const uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

}  // namespace tc::transport
