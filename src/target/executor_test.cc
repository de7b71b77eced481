// SPDX-License-Identifier: Apache-2.0
#include "target/executor.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>

namespace tc::target {
namespace {

class Host final : public IfuncHost {
 public:
  void* data(std::string_view, size_t*) noexcept override { return nullptr; }
  tc_status_t reply(ByteView) noexcept override { return TC_OK; }
  tc_status_t forward(uint32_t, ByteView) noexcept override { return TC_OK; }
  tc_status_t forward_as(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
  tc_status_t inject(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
  void fail(int32_t, std::string_view) noexcept override {}
  void log(int, std::string_view) noexcept override {}
};

class ExecutorThat : public ::testing::Test {
 protected:
  ~ExecutorThat() override { std::fesetenv(FE_DFL_ENV); }
  void call(EntryPoint function) {
    const Executor::Scope scope(executor_);
    Code code;
    code.entry = function;
    executor_.run(code, nullptr, 0);
    executor_.forget(code);
  }
  Host host_;
  Executor executor_{host_};
};

double quotient(double a, double b) {
  volatile double from = a, by = b;
  return from / by;
}

long double long_quotient(long double a, long double b) {
  volatile long double from = a, by = b;
  return from / by;
}

TEST_F(ExecutorThat, runs_code_that_rounds_otherwise_computes_as_before_afterwards) {
  const double third = quotient(1, 3);
  const long double long_third = long_quotient(1, 3);
  for (const auto function : {+[](void*, size_t, void*) { std::fesetround(FE_UPWARD); },
                              +[](void*, size_t, void*) { std::fesetround(FE_TOWARDZERO); }}) {
    call(function);
    EXPECT_EQ(std::fegetround(), FE_TONEAREST);
    EXPECT_EQ(quotient(1, 3), third);
    EXPECT_EQ(long_quotient(1, 3), long_third);
  }
}

// The application's own choice is not ours to change.
TEST_F(ExecutorThat, runs_code_in_a_program_that_rounds_otherwise_leaves_that_to_it) {
  std::fesetround(FE_DOWNWARD);
  call([](void*, size_t, void*) { std::fesetround(FE_UPWARD); });
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
}

#if defined(__x86_64__)
TEST_F(ExecutorThat, runs_code_that_counts_denormal_numbers_as_zero_does_not_do_so_afterwards) {
  call([](void*, size_t, void*) { __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040); });
  EXPECT_NE(quotient(1e-310, 2), 0);
}
#endif

#if defined(__GLIBC__)
TEST_F(ExecutorThat, runs_code_that_unmasks_exceptions_goes_on_without_a_signal) {
  if (::feenableexcept(FE_DIVBYZERO) == -1) GTEST_SKIP() << "this processor raises no signals";
  std::fesetenv(FE_DFL_ENV);
  call([](void*, size_t, void*) { ::feenableexcept(FE_ALL_EXCEPT); });
  EXPECT_EQ(::fegetexcept(), 0);
  EXPECT_TRUE(std::isinf(quotient(1, 0)));
  EXPECT_TRUE(std::isinf(long_quotient(1, 0)));
}
#endif

#if defined(__x86_64__)
// What the code has divided by zero itself is raised by the next instruction of the x87 unit.
TEST_F(ExecutorThat, runs_code_that_leaves_an_exception_pending_goes_on_without_a_signal) {
  call([](void*, size_t, void*) {
    (void)long_quotient(1, 0);
    constexpr unsigned short unmasked = 0x0340;
    asm volatile("fldcw %0" : : "m"(unmasked));
  });
  EXPECT_TRUE(std::isinf(long_quotient(1, 0)));
}
#endif

}  // namespace
}  // namespace tc::target
