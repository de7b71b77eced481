// SPDX-License-Identifier: Apache-2.0
#include "node/liveness/watchdog.h"

#include <atomic>
#include <filesystem>

#include "node/testing/node_test_kit.h"
#include "wire/testing/bundles.h"

namespace tc::node {
namespace {

size_t threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

struct NoHost final : target::IfuncHost {
  void* data(std::string_view, size_t*) noexcept override { return nullptr; }
  tc_status_t reply(ByteView) noexcept override { return TC_OK; }
  tc_status_t forward(uint32_t, ByteView) noexcept override { return TC_OK; }
  tc_status_t forward_as(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
  tc_status_t inject(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
  void fail(int32_t, std::string_view) noexcept override {}
  void log(int, std::string_view) noexcept override {}
};

struct FakeCode final : target::Code {
  explicit FakeCode(target::EntryPoint run) {
    entry = run;
    bundle = std::make_unique<Bundle>(tc::testing::four_slices());
  }
};

constexpr uint64_t limit_ns = 20'000'000;

// One executor with calls of ours, and what was reported about them.
class WatchdogOf : public ::testing::Test {
 protected:
  // How many of it may be reported rightly (run_often): none, or one.
  uint64_t run(FakeCode& code) {
    const auto before = now_ns();
    executor.next_tick();
    dog.wake();
    {
      const target::Executor::Scope scope(executor);
      executor.run_plain(code, nullptr, 0);
    }
    return now_ns() - before >= limit_ns ? 1 : 0;
  }
  // For a while, one call after the other. How many may have taken longer than the limit, as the machine interrupted them:
  // such a call is reported rightly, since nobody can tell it from a slow one. The watchdog sees a call begin between
  // `before` and `entered_ns`, and end when the next one begins.
  uint64_t run_often(FakeCode& code) {
    const auto until = Deadline::after_ms(300);
    uint64_t interrupted = 0, before = now_ns();
    {
      const target::Executor::Scope scope(executor);
      while (!until.passed()) {
        const auto now = now_ns();
        executor.run_plain(code, nullptr, 0);
        if (entered_ns - before >= limit_ns) ++interrupted;
        before = now;
      }
    }
    if (now_ns() - before >= limit_ns) ++interrupted;
    return interrupted;
  }
  std::vector<std::string> reported() {
    const std::scoped_lock lock(mutex);
    return reports;
  }

  NoHost host;
  target::Executor executor{host};
  std::mutex mutex;
  std::vector<std::string> reports;
  static inline std::atomic<uint64_t> told = 0;  // reports
  // Lasts until it is reported, and longer than it takes to report it again. The watchdog's thread may have to wait for a core.
  FakeCode slow{+[](void*, size_t, void*) {
    const auto before = told.load();
    EXPECT_TRUE(tc::test::run_until([&] { return told != before; }, [] { sleep_ms(1); }));
    sleep_ms(100);
  }};
  static inline uint64_t entered_ns = 0;
  FakeCode quick{+[](void*, size_t, void*) { entered_ns = now_ns(); }};
  FakeCode brief{+[](void*, size_t, void*) {
    entered_ns = now_ns();
    sleep_ms(14);
  }};
  Watchdog dog{executor, 20,
               [this](const std::string& ifunc, uint64_t running_ms) {
                 EXPECT_GE(running_ms, 20u);
                 const std::scoped_lock lock(mutex);
                 reports.push_back(ifunc);
                 ++told;
               },
               [](const std::string& why) { ADD_FAILURE() << why; }};
};

TEST_F(WatchdogOf, a_call_over_the_limit_is_reported_once_and_by_name) {
  dog.watch(slow);
  run(slow);
  EXPECT_THAT(reported(), ::testing::ElementsAre("golden"));
  run(slow);
  EXPECT_EQ(reported().size(), 2u) << "another call, another report";
}

TEST_F(WatchdogOf, many_quick_calls_are_no_slow_one) {
  dog.watch(quick);
  const auto interrupted = run_often(quick);
  EXPECT_LE(reported().size(), interrupted);
}

TEST_F(WatchdogOf, calls_that_each_end_within_the_limit_are_no_slow_one) {
  dog.watch(brief);
  const auto interrupted = run_often(brief);
  EXPECT_LE(reported().size(), interrupted);
}

TEST_F(WatchdogOf, an_executor_that_rests_is_not_stuck) {
  dog.watch(quick);
  const auto interrupted = run(quick);
  sleep_ms(200);
  EXPECT_LE(reported().size(), interrupted);
}

TEST_F(WatchdogOf, what_takes_long_between_calls_is_no_call) {
  const auto before = now_ns();
  const target::Executor::Scope scope(executor);
  executor.run_plain(quick, nullptr, 0);
  const target::Executor::Pause pause(executor);
  const bool interrupted = now_ns() - before >= limit_ns;
  sleep_ms(100);
  EXPECT_LE(reported().size(), interrupted ? 1u : 0u);
}

TEST_F(WatchdogOf, it_wakes_when_calls_run_again) {
  dog.watch(slow);
  sleep_ms(200);
  run(slow);
  EXPECT_EQ(reported().size(), 1u);
}

TEST_F(WatchdogOf, code_that_was_freed_is_not_looked_at) {
  dog.watch(slow);
  dog.forget(slow);
  run(slow);
  EXPECT_THAT(reported(), ::testing::ElementsAre("?"));
}

TEST(NodeWatchdog, an_ifunc_that_is_stuck_is_counted_and_its_sender_is_free_at_its_deadline) {
  test::Net net;
  auto target = net.make(1, [](Config& config) { config.execution_limit_ms = 30; });
  auto source = net.make(2);
  static std::atomic<bool> is_stuck, goes_on;
  is_stuck = goes_on = false;
  target->policy().export_symbol("application_answer", reinterpret_cast<void*>(+[]() -> uint64_t {
                                   is_stuck = true;
                                   (void)tc::test::run_until([] { return goes_on.load(); }, [] { sleep_ms(1); });
                                   return 1;
                                 }));
  const test::Background running(*target);
  auto* link = test::connect(*source, "n1");
  // On a busy machine it may be too late when the target gets to it: then it does not run.
  for (uint32_t deadline_ms = 100; !is_stuck && deadline_ms < 10'000; deadline_ms *= 2) {
    const auto answer = test::call(*source, *link, *test::message(*source, "exported", ""), deadline_ms);
    EXPECT_EQ(answer->status, TC_ERR_TIMEOUT);
  }
  const auto stuck = [&] { return target->reports_of_stuck_calls() != 0; };
  EXPECT_TRUE(tc::test::run_until(stuck, [] { sleep_ms(1); }));
  goes_on = true;
}

TEST(NodeWatchdog, a_node_that_only_sends_has_no_watchdog_and_one_without_a_limit_neither) {
  test::Net net;
  auto target = net.make(1, [](Config& config) { config.execution_limit_ms = 0; });
  auto source = net.make(2);
  std::thread([] {}).join();  // a sanitizer adds its own thread to a program's first
  const auto before = threads_now();
  {
    const test::Background running(*target);
    test::call(*source, *test::connect(*source, "n1"), *test::message(*source, "echo", "x"));
  }
  EXPECT_EQ(threads_now(), before);
}

}  // namespace
}  // namespace tc::node
