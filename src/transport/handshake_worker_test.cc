// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <latch>
#include <string>

#include "transport/handshake.h"

namespace tc::transport {
namespace {

// A session whose step takes as long as the test says, and is written down.
class TestSession final : public trust::TlsSession {
 public:
  explicit TestSession(std::function<void()> step) : step_(std::move(step)) {}
  Result<bool> handshake() override { return step_(), true; }

  const trust::PublicKey& peer_key() const noexcept override { return key_; }
  bool is_peer_key_temporary() const noexcept override { return false; }
  std::span<std::byte> room() noexcept override { return {}; }
  void received(size_t) noexcept override {}
  ByteView to_send() const noexcept override { return {}; }
  void sent(size_t) noexcept override {}
  Result<size_t> write(ByteView) override { return 0; }
  Result<size_t> read(std::span<std::byte>) override { return 0; }
  bool has_more() const noexcept override { return false; }
  void end() noexcept override {}

 private:
  std::function<void()> step_;
  trust::PublicKey key_{};
};

class AHandshakeWorker : public testing::Test {
 protected:
  using Urgency = HandshakeWorker::Urgency;
  struct Client {
    bool done = false;
  };

  void SetUp() override {
    ASSERT_TRUE(poller.open());
    submit(first, '0', Urgency::begun, [this] {
      begun.count_down();
      go_on.wait();
    });
    begun.wait();
  }
  // What follows waits until go_on.
  void submit(Client& client, char name, Urgency urgency, std::function<void()> step = {}) {
    auto session = std::make_unique<TestSession>([this, name, step] {
      order += name;
      if (step) step();
    });
    ASSERT_TRUE(worker.submit(
        std::move(session), &client, [&client](auto, Result<bool> complete) { client.done = complete.value(); },
        urgency));
  }
  void finish(const Client& last) {
    go_on.count_down();
    for (const auto deadline = Deadline::after_ms(20'000); !last.done && !deadline.passed();)
      poller.wait(Deadline::after_ms(10));
    EXPECT_TRUE(last.done);
  }

  Poller poller;
  std::latch begun{1}, go_on{1};
  std::string order;  // of the steps; written by the worker
  Client first, clients[5];
  HandshakeWorker worker{poller};
};

TEST_F(AHandshakeWorker, does_first_what_was_begun_in_order_and_then_the_newest_newcomer) {
  submit(clients[0], 'a', Urgency::newcomer);
  submit(clients[1], 'b', Urgency::newcomer);
  submit(clients[2], 'c', Urgency::begun);
  submit(clients[3], 'd', Urgency::begun);
  submit(clients[4], 'e', Urgency::newcomer);
  finish(clients[0]);
  EXPECT_EQ(order, "0cdeba");
  for (const auto& client : clients) EXPECT_TRUE(client.done);
}

TEST_F(AHandshakeWorker, gives_way_to_threads_that_serve_calls) {
  int niceness = 0;
  submit(clients[0], 'a', Urgency::newcomer, [&] { niceness = ::getpriority(PRIO_PROCESS, 0); });
  finish(clients[0]);
  EXPECT_EQ(niceness, std::min(::getpriority(PRIO_PROCESS, 0) + 10, 19));
}

TEST_F(AHandshakeWorker, drops_what_is_cancelled_whether_it_waits_or_runs) {
  submit(clients[0], 'a', Urgency::newcomer);
  submit(clients[1], 'b', Urgency::newcomer);
  submit(clients[2], 'c', Urgency::begun);
  worker.cancel(&first);
  worker.cancel(&clients[1]);
  worker.cancel(&clients[2]);
  finish(clients[0]);
  EXPECT_EQ(order, "0a");
  EXPECT_FALSE(first.done || clients[1].done || clients[2].done);
}

}  // namespace
}  // namespace tc::transport
