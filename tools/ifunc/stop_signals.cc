// SPDX-License-Identifier: Apache-2.0
#include "ifunc/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/quiet_thread.h"

namespace tc::command {
namespace {

// A call ends sooner, as a rule: then there is nothing to tell.
constexpr uint64_t told_after_ns = 500'000'000;
constexpr uint64_t grace_ns = 1'000'000'000;

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

// 0: none came until then.
int wait_for_signal(const sigset_t& set, uint64_t until_ns) {
  if (until_ns == UINT64_MAX) {
    int signal = 0;
    return sigwait(&set, &signal) == 0 ? signal : 0;
  }
  const uint64_t left = Deadline::at_ns(until_ns).remaining_ns();
  const timespec timeout{static_cast<time_t>(left / 1'000'000'000), static_cast<long>(left % 1'000'000'000)};
  return std::max(sigtimedwait(&set, nullptr, &timeout), 0);
}

}  // namespace

StopSignals::StopSignals() {
  const auto set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

Status StopSignals::start(Handlers handlers, std::optional<uint32_t> drain_ms) {
  handlers_ = std::move(handlers);
  if (drain_ms) drain_ns_ = uint64_t{*drain_ms} * 1'000'000;
  auto thread = quiet_thread([this] { take_signals(); });
  if (!thread) return context("no thread can be started that takes signals", std::move(thread).error());
  thread_ = std::move(*thread);
  return {};
}

void StopSignals::take_signals() {
  const auto set = stop_set();
  while (true) {
    const int signal = wait_for_signal(set, next_step_ns());
    if (closing_.load()) return;
    if (signal != 0)
      act_on(signal);
    else if (requested_ns_ != 0)
      take_step();
  }
}

void StopSignals::act_on(int signal) {
  if (signal == SIGHUP) return handlers_.reload();
  if (requested_.exchange(true)) {
    handlers_.again(signal);
    _exit(128 + signal);
  }
  signal_.store(signal, std::memory_order_release);
  requested_ns_ = now_ns();
  handlers_.stop(signal);
}

uint64_t StopSignals::next_step_ns() const noexcept {
  if (requested_ns_ == 0 || !drain_ns_) return UINT64_MAX;
  const auto end_ns = *drain_ns_ + grace_ns_;
  return requested_ns_ + (has_told_ ? end_ns : std::min(end_ns, told_after_ns));
}

void StopSignals::take_step() {
  const uint64_t now = now_ns();
  if (now >= requested_ns_ + *drain_ns_ + grace_ns_) {
    if (handlers_.gives_up() || grace_ns_ != 0) _exit(128 + signal());
    grace_ns_ = grace_ns;
    return;
  }
  if (has_told_ || now < requested_ns_ + told_after_ns) return;
  has_told_ = true;
  handlers_.waits();
}

void StopSignals::finish() {
  if (!thread_.joinable()) return;
  closing_.store(true);
  pthread_kill(thread_.native_handle(), SIGTERM);
  thread_.join();
  const auto set = stop_set();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace tc::command
