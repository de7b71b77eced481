// SPDX-License-Identifier: Apache-2.0
#include "transport/poller.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "base/testing/refused_calls.h"

namespace tc::transport {
namespace {

constexpr uint64_t long_ms = 20'000, far_less_ns = 10'000'000'000;

struct Recorder final : Watcher {
  void on_ready(uint32_t events) noexcept override {
    ++calls;
    last = events;
  }
  int calls = 0;
  uint32_t last = 0;
};

class APoller : public testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends), 0);
    near = Fd(ends[0]);
    far = Fd(ends[1]);
    ASSERT_TRUE(poller.open());
  }
  void send_byte() { ASSERT_EQ(::send(far.get(), "x", 1, 0), 1); }

  Poller poller;
  Recorder watcher;
  Fd near, far;
};

TEST_F(APoller, calls_the_watcher_of_a_ready_descriptor_and_no_other) {
  ASSERT_TRUE(poller.add(near, watcher, EPOLLIN));
  EXPECT_EQ(poller.poll(), 0u);
  send_byte();
  EXPECT_EQ(poller.poll(), 1u);
  EXPECT_EQ(watcher.calls, 1);
  EXPECT_EQ(watcher.last, static_cast<uint32_t>(EPOLLIN));
}

TEST_F(APoller, a_change_takes_effect_and_a_removed_descriptor_is_silent) {
  ASSERT_TRUE(poller.add(near, watcher, EPOLLIN));
  poller.change(near, watcher, EPOLLIN | EPOLLOUT);
  EXPECT_EQ(poller.poll(), 1u);
  EXPECT_EQ(watcher.last, static_cast<uint32_t>(EPOLLOUT));
  poller.remove(near);
  send_byte();
  EXPECT_EQ(poller.poll(), 0u);
  EXPECT_EQ(watcher.calls, 1);
  poller.remove(Fd());
}

TEST_F(APoller, the_end_of_a_peer_is_an_event_even_for_a_watcher_of_nothing) {
  ASSERT_TRUE(poller.add(near, watcher, 0));
  far.reset();
  EXPECT_EQ(poller.poll(), 1u);
  EXPECT_NE(watcher.last & EPOLLHUP, 0u);
}

TEST_F(APoller, what_cannot_be_watched_is_an_error_with_a_reason) {
  const auto added = poller.add(-1, watcher, EPOLLIN);
  ASSERT_FALSE(added);
  EXPECT_EQ(added.error().code, TC_ERR_IO);
  EXPECT_NE(added.error().message.find("watching a socket: "), std::string::npos);
}

TEST_F(APoller, a_wait_ends_with_its_deadline_and_not_before) {
  const uint64_t before = now_ns();
  EXPECT_EQ(poller.wait(Deadline::after_ms(20)), 0u);
  EXPECT_GE(now_ns() - before, 20'000'000u);
  EXPECT_LT(now_ns() - before, far_less_ns);
}

// As a kernel without it does, and a container whose filter does not know it.
TEST_F(APoller, waits_as_long_where_the_exact_wait_is_not_to_be_had_or_not_allowed) {
  for (const int error : {ENOSYS, EPERM}) {
    bool is_filtered = false;
    uint64_t waited_ns = 0;
    std::thread([&] {
      is_filtered = test::refuse({.number = SYS_epoll_pwait2, .error = error});
      Poller own;
      const uint64_t before = now_ns();
      if (own.open()) own.wait(Deadline::after_ms(20));
      waited_ns = now_ns() - before;
    }).join();
    if (!is_filtered) GTEST_SKIP() << "no system call can be filtered here";
    EXPECT_GE(waited_ns, 20'000'000u) << error;
  }
}

TEST_F(APoller, a_wait_ends_when_something_comes) {
  ASSERT_TRUE(poller.add(near, watcher, EPOLLIN));
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    send_byte();
  });
  const uint64_t before = now_ns();
  EXPECT_EQ(poller.wait(Deadline::after_ms(long_ms)), 1u);
  EXPECT_LT(now_ns() - before, far_less_ns);
  other.join();
}

TEST_F(APoller, a_wake_ends_the_next_wait_once_and_calls_no_watcher) {
  ASSERT_TRUE(poller.add(near, watcher, EPOLLIN));
  for (int i = 0; i < 3; ++i) poller.wake();
  const uint64_t before = now_ns();
  EXPECT_EQ(poller.wait(Deadline::after_ms(long_ms)), 0u);
  EXPECT_LT(now_ns() - before, far_less_ns);
  const uint64_t second = now_ns();
  EXPECT_EQ(poller.wait(Deadline::after_ms(10)), 0u);
  EXPECT_GE(now_ns() - second, 10'000'000u) << "three wakes were one";
  EXPECT_EQ(watcher.calls, 0);
}

TEST_F(APoller, a_wait_whose_deadline_has_passed_still_delivers_what_is_there) {
  ASSERT_TRUE(poller.add(near, watcher, EPOLLIN));
  send_byte();
  EXPECT_EQ(poller.wait(Deadline::at_ns(0)), 1u);
}

}  // namespace
}  // namespace tc::transport
