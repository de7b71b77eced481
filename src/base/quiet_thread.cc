// SPDX-License-Identifier: Apache-2.0
#include "base/quiet_thread.h"

#include <signal.h>

#include <new>
#include <system_error>
#include <utility>

#include "base/no_memory.h"

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

Result<std::thread> quiet_thread(std::move_only_function<void()> body) noexcept try {
  const SignalsBlocked blocked;  // the new thread inherits the mask
  return std::thread(std::move(body));
} catch (const std::system_error& refused) {
  return fail(error_in_any_case(TC_ERR_IO, refused.code() == std::errc::resource_unavailable_try_again
                                               ? "a limit on tasks or memory leaves no thread for it"
                                               : refused.what()));
} catch (const std::bad_alloc&) {
  return fail(error_in_any_case(TC_ERR_NO_MEMORY, "no memory"));
}

}  // namespace tc
