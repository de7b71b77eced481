// SPDX-License-Identifier: Apache-2.0
#include "target/jit/llvm_errors.h"

#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/PrettyStackTrace.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>

namespace tc::target::jit {

namespace {

struct Guard {
  std::jmp_buf back;
  char reason[512];  // no std::string: nothing that needs a destructor may be alive when it jumps
};

thread_local Guard* current = nullptr;

void give_up(void*, const char* reason, bool) {
  if (!current) {
    // Another user of LLVM in this process. An installed handler is expected to print; LLVM ends the process next.
    std::fprintf(stderr, "LLVM ERROR: %s\n", reason);
    return;
  }
  std::strncpy(current->reason, reason, sizeof current->reason - 1);
  std::longjmp(current->back, 1);
}

}  // namespace

void install_fatal_guard() {
  static std::once_flag once;
  std::call_once(once, [] { llvm::install_fatal_error_handler(give_up); });
}

std::optional<std::string> run_guarded(llvm::function_ref<void()> work) {
  Guard guard{};
  const void* const stack_trace = llvm::SavePrettyStackState();
  current = &guard;
  if (setjmp(guard.back) != 0) {
    current = nullptr;
    llvm::RestorePrettyStackState(stack_trace);
    return std::string(guard.reason);
  }
  // LLVM itself is built without exceptions: one that went through it leaves it in the middle as well.
  const char* thrown = nullptr;
  try {
    work();
  } catch (const std::bad_alloc&) {
    thrown = "no memory";
  } catch (const std::exception&) {
    thrown = "an exception";
  }
  current = nullptr;
  if (thrown == nullptr) return std::nullopt;
  llvm::RestorePrettyStackState(stack_trace);
  return thrown;
}

}  // namespace tc::target::jit
