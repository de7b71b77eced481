// SPDX-License-Identifier: Apache-2.0
//
// One node, a progress thread, and an application of several threads. Says the most under the thread sanitizer.
#include <optional>

#include "capi/progress.h"
#include "node/testing/node_test_kit.h"

namespace tc::node::test {
namespace {

using capi::Gate;
using capi::Progress;

class ThreadsThat : public testing::TestWithParam<Progress::Waiters> {};

TEST_P(ThreadsThat, call_on_one_node_all_get_their_own_answer) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  std::optional<Background> running(std::in_place, *target);
  Gate gate;
  Progress progress(gate, *source);
  auto* const link = test::connect(*source, "n1");
  const auto ifunc = source->register_bundle(load_bundle("echo")).value();
  ASSERT_TRUE(progress.start(GetParam()));
  {
    std::vector<std::jthread> application;
    for (int thread = 0; thread < 4; ++thread)
      application.emplace_back([&, thread] {
        for (int i = 0; i < 100; ++i) {
          auto text = fmt::format("{} of thread {}", i, thread);
          const auto message = source::Message::create(ifunc, text.data(), text.size(), 1000).value();
          std::shared_ptr<Future> future;
          {
            const Gate::Pass pass(gate, *source);
            future = source->call(*link, *message, 20'000, Deadline::after_ms(5000)).value();
          }
          const Gate::Pass pass(gate, *source);
          EXPECT_TRUE(progress.wait_until(Deadline::after_ms(20'000),
                                          [&] { return future->ready.load(std::memory_order_acquire); }));
          EXPECT_EQ(as_text(future->bytes), text);
        }
      });
  }
  progress.stop();
  running.reset();  // from here on this thread may ask the node
  EXPECT_EQ(target->stat("executed"), 400u);
}

INSTANTIATE_TEST_SUITE_P(Waiting, ThreadsThat, testing::Values(Progress::Waiters::sleep, Progress::Waiters::poll),
                         [](const auto& waiters) {
                           return waiters.param == Progress::Waiters::sleep ? "sleep" : "poll";
                         });

TEST(Threads, who_waits_for_an_answer_is_let_in_while_the_progress_thread_sleeps) {
  Net net;
  auto node = net.make(1);
  Gate gate;
  Progress progress(gate, *node);
  ASSERT_TRUE(progress.start(capi::Progress::Waiters::sleep));
  uint64_t looks = 0;
  const auto begin = now_ns();
  {
    const Gate::Pass pass(gate, *node);
    EXPECT_FALSE(progress.wait_until(Deadline::after_ms(1000), [&] { return ++looks == 0; }));
  }
  EXPECT_GT(looks, (now_ns() - begin) / 50'000'000) << "one every 20 ms, but for a busy machine";
}

TEST(Threads, sends_and_flushes_from_many_threads_lose_nothing) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  uint64_t counter = 0;
  target->executor().target_args = &counter;
  {
    const Background running(*target);
    Gate gate;
    Progress progress(gate, *source);
    auto* const link = test::connect(*source, "n1");
    const auto tsi = test::message(*source, "tsi", "x");
    ASSERT_TRUE(progress.start(capi::Progress::Waiters::sleep));
    {
      std::vector<std::jthread> application;
      for (int thread = 0; thread < 3; ++thread)
        application.emplace_back([&] {
          for (int i = 0; i < 500; ++i) {
            const Gate::Pass pass(gate, *source);
            EXPECT_TRUE(source->send(*link, *tsi, false, Deadline::after_ms(5000)));
            if (i % 100 == 99) {
              EXPECT_TRUE(link->flush(Deadline::after_ms(20'000)));
            }
          }
        });
    }
    progress.stop();
  }
  EXPECT_EQ(counter, 1500u);
}

// A thread that waits for messages again and again, until end() sets a flag and wakes it.
class Serving {
 public:
  explicit Serving(Node& node) : node_(node), thread_([this] { run(); }) {}
  ~Serving() { end(); }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;
  void end() {
    if (!thread_.joinable()) return;
    stopping_.store(true, std::memory_order_release);
    node_.wake();
    thread_.join();
  }

 private:
  void run() {
    while (!stopping_.load(std::memory_order_acquire)) {
      node_.wait_ms(60'000);
      node_.expire();
    }
  }

  Node& node_;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

TEST(Threads, a_thread_in_a_loop_of_waits_runs_message_after_message_until_it_is_woken) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const auto begin = now_ns();
  {
    Serving serving(*target);
    auto* const link = test::connect(*source, "n1");
    const auto echo = test::message(*source, "echo", "x");
    for (int i = 0; i < 100; ++i) EXPECT_EQ(test::call(*source, *link, *echo)->status, TC_OK);
  }
  EXPECT_EQ(target->stat("executed"), 100u);
  EXPECT_LT(now_ns() - begin, 50'000'000'000u) << "the wake ended it, not its deadline";
}

TEST(Threads, a_thread_in_a_loop_of_waits_is_woken_out_of_traffic_that_does_not_end) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  Serving serving(*target);
  auto* const link = test::connect(*source, "n1");
  const auto echo = test::message(*source, "echo", "x");
  EXPECT_EQ(test::call(*source, *link, *echo)->status, TC_OK);
  std::atomic<bool> ended = false;
  std::jthread waker([&] {
    serving.end();
    ended = true;
  });
  const auto deadline = Deadline::after_ms(20'000);
  while (!ended && !deadline.passed()) {
    (void)source->send(*link, *echo, false, Deadline::at_ns(0));
    source->poll();
  }
  EXPECT_TRUE(ended);
}

TEST(Threads, a_wake_before_a_wait_ends_it_and_so_does_its_deadline) {
  Net net;
  auto node = net.make(1);
  node->wake();
  const auto begin = now_ns();
  node->wait_ms(60'000);
  EXPECT_LT(now_ns() - begin, 30'000'000'000u);
  node->wait_ms(5);
  EXPECT_GE(now_ns() - begin, 5'000'000u);
  node->wait_ms(0);
}

TEST(Threads, the_progress_thread_starts_and_stops_again_and_again) {
  Net net;
  auto node = net.make(1);
  Gate gate;
  Progress progress(gate, *node);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(progress.start(capi::Progress::Waiters::sleep));
    EXPECT_EQ(progress.start(capi::Progress::Waiters::sleep).error().code, TC_ERR_INVALID);
    {
      const Gate::Pass pass(gate, *node);
      node->expose("data", &i, sizeof i);
    }
    progress.stop();
  }
}

}  // namespace
}  // namespace tc::node::test
