// SPDX-License-Identifier: Apache-2.0
//
// LLVM's errors in our form, with LLVM's own words: those that it returns, and those at which it ends the process.
//
// LLVM ends the process when it meets what it has no code for: an intrinsic of an instruction set that this CPU
// lacks is enough ("Cannot select"), and in a system of unlike machines that is an honest mistake. Here such an end
// becomes an error.
//
// LLVM does not let its fatal error handler return, so it jumps, as LLVM's own CrashRecoveryContext does. No
// destructor between the error and the guard runs: whatever LLVM had in hands then must never be touched again, nor
// freed. It does not help against crashes.
//
// Threads: any; each has its own guard. The handler belongs to the process, by LLVM's definition.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/Support/Error.h>

#include <optional>
#include <string>

#include "base/result.h"

namespace tc::target::jit {

inline std::unexpected<Error> compile_error(std::string_view doing, llvm::Error error) {
  return fail(TC_ERR_COMPILE, "{}: {}", doing, llvm::toString(std::move(error)));
}

// Once, before the first run_guarded().
void install_fatal_guard();

// Runs `work`. LLVM's words when it gave up; ours when an exception ended it, as where there is no memory.
std::optional<std::string> run_guarded(llvm::function_ref<void()> work);

}  // namespace tc::target::jit
