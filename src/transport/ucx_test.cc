// SPDX-License-Identifier: Apache-2.0
//
// Two real processes, each way, with UCX_TLS as the environment has it.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "transport/test_node.h"

namespace tc::transport {
namespace {

// A child process that echoes.
class Echo {
 public:
  explicit Echo(const std::string& way, const char* spin_us = "100") {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) std::abort();
    pid = fork();
    if (pid == 0) {
      dup2(ends[1], 1);
      execl(UCX_TEST_PEER, UCX_TEST_PEER, way.c_str(), spin_us, nullptr);
      _exit(127);
    }
    ::close(ends[1]);
    FILE* const reader = fdopen(ends[0], "r");
    char line[128] = {};
    if (fgets(line, sizeof line, reader) != nullptr) address = std::string(line, strcspn(line, "\n"));
    fclose(reader);
  }
  ~Echo() {
    if (pid > 0) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  void signal(int number) const { kill(pid, number); }
  int wait() {
    int status = 0;
    waitpid(std::exchange(pid, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  pid_t pid = -1;
  std::string address;
};

struct Setting {
  const char* tls;
  Way way;
};

std::string name(const testing::TestParamInfo<Setting>& info) {
  std::string text = fmt::format("{}_over_{}", way_name(info.param.way), info.param.tls);
  std::ranges::replace(text, ',', '_');
  return text;
}

class Ucx : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    setenv("UCX_TLS", GetParam().tls, 1);
    unsetenv("UCX_POSIX_ERROR_HANDLING");  // set by a transport before us, for another UCX_TLS
    unsetenv("UCX_SYSV_ERROR_HANDLING");
  }
  void start(const char* spin_us = "100") {
    echo = std::make_unique<Echo>(std::string(way_name(GetParam().way)), spin_us);
    ASSERT_FALSE(echo->address.empty());
    node = std::make_unique<TestNode>(GetParam().way);
    node->connect(echo->address);
    ASSERT_TRUE(node->until([&] { return node->open() || node->lost || node->refused; }));
    ASSERT_FALSE(node->lost) << node->lost->message;
    ASSERT_FALSE(node->refused) << node->refused->message;
    if (GetParam().way != Way::automatic) {
      ASSERT_EQ(node->peer->way(), GetParam().way);
    }
  }
  OutStream& out() { return node->peer->out(); }
  InStream& in() { return node->peer->in(); }
  // One frame there and back.
  bool ping(uint32_t number, size_t length = 8) {
    if (!node->until([&] { return put_frame(out(), number, length); })) return false;
    Took took = Took::nothing;
    return node->until([&] { return (took = take_frame(in(), number)) != Took::nothing; }) && took == Took::frame;
  }

  std::unique_ptr<Echo> echo;
  std::unique_ptr<TestNode> node;
};

TEST_P(Ucx, a_hundred_thousand_frames_come_back_whole_and_in_order) {
  start();
  Random random(7);
  constexpr uint32_t frames = 100000;
  uint32_t sent = 0, received = 0;
  const auto deadline = Deadline::after_ms(60000);
  while (received < frames && !node->lost && !deadline.passed()) {
    for (int i = 0; i < 64 && sent < frames; ++i) {
      if (!put_frame(out(), sent, random.below(sent % 16 == 0 ? out().max_length() / 8 : 100))) break;
      ++sent;
    }
    node->turn();
    for (Took took; (took = take_frame(in(), received)) != Took::nothing; ++received)
      ASSERT_EQ(took, Took::frame) << received;
    in().release();
  }
  ASSERT_FALSE(node->lost) << node->lost->message;
  EXPECT_EQ(received, frames);
  node->peer->close();
  node.reset();
  EXPECT_EQ(echo->wait(), 0);
}

TEST_P(Ucx, frames_of_the_longest_length_pass) {
  start();
  for (uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(ping(i, out().max_length())) << i;
}

TEST_P(Ucx, a_killed_peer_is_lost_within_a_second) {
  start();
  ASSERT_TRUE(ping(0));
  echo->signal(SIGKILL);
  const uint64_t before = now_ns();
  ASSERT_TRUE(node->until([&] { return node->lost.has_value(); }));
  EXPECT_LT(now_ns() - before, 1'000'000'000u);
  EXPECT_EQ(node->lost->code, TC_ERR_DISCONNECTED) << node->lost->message;
  EXPECT_EQ(out().reserve(8), nullptr);
  EXPECT_EQ(node->peer->send_control(control_frame(1)).error().code, TC_ERR_DISCONNECTED);
  for (int i = 0; i < 1000; ++i) node->turn();
  EXPECT_EQ(node->losses, 1u);
}

TEST_P(Ucx, a_killed_peer_ends_a_sleep) {
  start();
  ASSERT_TRUE(ping(0));
  echo->signal(SIGKILL);
  const uint64_t before = now_ns();
  while (!node->lost && now_ns() - before < 5'000'000'000) {
    node->sleep(5000);
    node->turn();
  }
  EXPECT_LT(now_ns() - before, 1'000'000'000u);
}

TEST_P(Ucx, sleepers_on_both_sides_are_woken_by_a_frame) {
  start("0");
  const uint64_t before = now_ns();
  for (uint32_t i = 0; i < 200; ++i) {
    if (i % 20 == 0) usleep(3000);  // the peer sleeps deeply now
    ASSERT_TRUE(node->until([&] { return put_frame(out(), i, 8); }));
    Took took;
    while ((took = take_frame(in(), i)) == Took::nothing) {
      const uint64_t asleep = now_ns();
      node->sleep(3000);
      node->turn();
      ASSERT_LT(now_ns() - asleep, 2'000'000'000u) << "frame " << i << " was slept over";
    }
    ASSERT_EQ(took, Took::frame);
  }
  EXPECT_LT(now_ns() - before, 5'000'000'000u);
}

TEST_P(Ucx, an_idle_sleeper_costs_no_cpu) {
  start("0");
  ASSERT_TRUE(ping(0));
  for (int i = 0; i < 3; ++i) {  // what is left of the connection's start
    node->sleep(50);
    node->turn();
  }
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  const uint64_t begin = now_ns();
  int sleeps = 0;
  while (now_ns() - begin < 500'000'000) {
    node->sleep(500);
    node->turn();
    ++sleeps;
  }
  getrusage(RUSAGE_SELF, &after);
  const auto cpu_us = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec -
                      before.ru_utime.tv_usec + (after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
                      after.ru_stime.tv_usec - before.ru_stime.tv_usec;
  EXPECT_LT(cpu_us, 5000);
  EXPECT_LT(sleeps, 10);
}

TEST_P(Ucx, a_stopped_peer_fills_the_way_and_all_arrives_when_it_goes_on) {
  start();
  ASSERT_TRUE(ping(0));
  echo->signal(SIGSTOP);
  uint32_t sent = 1;
  const auto deadline = Deadline::after_ms(10000);
  while (put_frame(out(), sent, 1000) && !deadline.passed()) {
    ++sent;
    node->turn();
  }
  EXPECT_GT(sent, 100u);
  EXPECT_FALSE(deadline.passed());
  for (int i = 0; i < 1000; ++i) node->turn();
  EXPECT_EQ(out().reserve(1000), nullptr);
  EXPECT_FALSE(node->lost);
  echo->signal(SIGCONT);
  uint32_t received = 1;
  ASSERT_TRUE(node->until([&] {
    for (Took took; (took = take_frame(in(), received)) == Took::frame;) ++received;
    in().release();
    return received == sent;
  })) << received
      << " of " << sent;
  EXPECT_TRUE(node->until([&] { return put_frame(out(), sent, 1000); }));
}

TEST_P(Ucx, closing_is_clean_and_told_to_the_peer) {
  start();
  ASSERT_TRUE(ping(0));
  node->peer->close();
  ASSERT_TRUE(node->until([&] {
    int status;
    return waitpid(echo->pid, &status, WNOHANG) == echo->pid && (echo->pid = -1, WEXITSTATUS(status) == 0);
  }));
  EXPECT_EQ(node->losses, 0u);
}

TEST_P(Ucx, wake_ends_a_sleep) {
  start();
  node->transport->wake();
  const uint64_t before = now_ns();
  node->sleep(5000);
  EXPECT_LT(now_ns() - before, 1'000'000'000u);
}

INSTANTIATE_TEST_SUITE_P(Ways, Ucx,
                         testing::Values(Setting{"posix,self", Way::am}, Setting{"tcp,self", Way::am},
                                         Setting{"all", Way::am}, Setting{"posix,self", Way::ring},
                                         Setting{"all", Way::ring}, Setting{"posix,self", Way::put},
                                         Setting{"tcp,self", Way::put}, Setting{"all", Way::put},
                                         Setting{"all", Way::automatic}),
                         name);

}  // namespace
}  // namespace tc::transport
