// SPDX-License-Identifier: Apache-2.0
#include "target/jit/llvm_errors.h"

#include <gtest/gtest.h>
#include <llvm/Support/ErrorHandling.h>

#include <new>
#include <stdexcept>

namespace tc::target::jit {
namespace {

TEST(RunGuarded, what_llvm_gives_up_with_is_the_reason) {
  install_fatal_guard();
  EXPECT_EQ(run_guarded([] { llvm::report_fatal_error("given up", false); }), "given up");
  EXPECT_EQ(run_guarded([] {}), std::nullopt);
}

TEST(RunGuarded, an_exception_is_a_reason_and_ends_the_guard) {
  install_fatal_guard();
  EXPECT_EQ(run_guarded([] { throw std::bad_alloc(); }), "no memory");
  EXPECT_EQ(run_guarded([] { throw std::runtime_error("other"); }), "an exception");
  EXPECT_DEATH(llvm::report_fatal_error("nobody guards", false), "LLVM ERROR: nobody guards");
}

}  // namespace
}  // namespace tc::target::jit
