// SPDX-License-Identifier: Apache-2.0
#include "ifunc/stop_signals.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

namespace tc::command {
namespace {

sigset_t stop_set() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

StopSignals::StopSignals() {
  const auto set = stop_set();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

void StopSignals::start(std::function<void()> on_stop, std::function<void()> on_reload) {
  on_stop_ = std::move(on_stop);
  on_reload_ = std::move(on_reload);
  thread_ = std::thread([this] { take_signals(); });
}

void StopSignals::take_signals() {
  const auto set = stop_set();
  while (true) {
    int signal = 0;
    if (sigwait(&set, &signal) != 0) continue;
    if (closing_.load()) return;
    if (signal == SIGHUP) {
      on_reload_();
      continue;
    }
    if (requested_.exchange(true)) _exit(128 + signal);
    signal_.store(signal, std::memory_order_release);
    on_stop_();
  }
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
