// SPDX-License-Identifier: Apache-2.0
#include "base/quiet_thread.h"

#include <signal.h>

#include <utility>

namespace tc {

namespace {

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

}  // namespace

std::thread quiet_thread(std::move_only_function<void()> body) {
  const SignalsBlocked blocked;  // the new thread inherits the mask
  return std::thread(std::move(body));
}

}  // namespace tc
