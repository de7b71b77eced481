// SPDX-License-Identifier: Apache-2.0
//
// Starts our threads inside the application's process.
//
// Threads: any.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace tc {

// Starts a thread that blocks all signals, so that the application's handlers never run on it, but for those that the thread's
// own faults cause. Throws what std::thread throws.
template <class Body>
std::thread quiet_thread(Body body) {
  class SignalsBlocked {
   public:
    SignalsBlocked() {
      sigset_t all;
      sigfillset(&all);
      for (const int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS}) sigdelset(&all, own);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

   private:
    sigset_t before_;
  };
  const SignalsBlocked blocked;  // the new thread inherits the mask
  return std::thread(std::move(body));
}

}  // namespace tc
