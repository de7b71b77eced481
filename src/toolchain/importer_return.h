// SPDX-License-Identifier: Apache-2.0
//
// Leaving an ifunc from anywhere inside it, without a runtime: no setjmp in the executor, which every call would pay
// for, and no unwinder at the target. A function that fails returns, and so does each of its callers. After inlining,
// which comes first, most failures stand in the entry itself and there a return is all. For the others a byte of the
// thread, which the runtime has (tc_leaving()), says that the call is on its way out; callers test it after each call
// that can fail.
//
// Threads: the one that owns the module.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace llvm {
class CallBase;
class Module;
}  // namespace llvm

namespace tc::toolchain {

struct Failure {
  llvm::CallBase* call;  // never returns
  int32_t code;
  std::string message;
};

// Replaces each call by tc_fail(code, message) and a return from the entry that was called, through all functions
// in between.
void leave_entries_at(llvm::Module& module, const std::vector<Failure>& failures,
                      const std::vector<std::string>& entries);

}  // namespace tc::toolchain
