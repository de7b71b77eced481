// SPDX-License-Identifier: Apache-2.0
//
// Connecting to a name with several addresses, on a clock of the test's: check_deadline() is given the time.
#include "transport/socket_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include "transport/address.h"
#include "transport/socket/tcp_connection.h"

namespace tc::transport {
namespace {

constexpr uint64_t second_ns = 1'000'000'000;

struct TestEvents final : Events {
  Status may_connect(const Origin&) override { return {}; }
  void on_accept(std::unique_ptr<Connection>, ByteView) override {}
  void on_greeting(Connection&, ByteView) override {}
  void on_frames(Connection&) override {}
  void on_lost(Connection&, const Error& why) override { lost = why; }
  std::optional<Error> lost;
};

Fd listen_on_loopback(int backlog) {
  auto listener = listen_at(resolve("127.0.0.1:0", true).value().front());
  EXPECT_TRUE(listener);
  EXPECT_EQ(::listen(listener->get(), backlog), 0);
  return std::move(*listener);
}

// The kernel drops the first packet of whoever connects: the queue of this listener is full.
struct Silent {
  Silent() {
    for (auto& one : queued) one = std::move(*connect_to(local_address(listener)));
  }
  Fd listener = listen_on_loopback(0);
  Fd queued[3];
};

class SeveralAddresses : public testing::Test {
 protected:
  void SetUp() override {
    hub.trusted_networks = networks;
    ASSERT_TRUE(hub.poller.open());
  }
  std::unique_ptr<TcpConnection> connect(const Fd& first, const Fd& second) {
    return TcpConnection::connect(hub, std::move(*connect_to(local_address(first))), "a name", {local_address(second)},
                                  {})
        .value();
  }
  void poll(TcpConnection& connection, uint64_t now) {
    for (int i = 0; i < 20; ++i) hub.poller.wait(Deadline::after_ms(1));
    connection.check_deadline(now);
    for (int i = 0; i < 20; ++i) hub.poller.wait(Deadline::after_ms(1));
    (void)connection.deliver_loss();
  }
  // How many bytes of a greeting have come to somebody who connected there; -1: nobody has.
  static ssize_t greeting_at(const Fd& listener) {
    const Fd accepted(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
    if (!accepted) return -1;
    std::byte bytes[1024];
    return ::recv(accepted.get(), bytes, sizeof bytes, 0);
  }

  TestEvents events;
  PollState poll_state;
  Hub hub{events, poll_state, [](trust::TlsRole) { return fail(TC_ERR_UNSUPPORTED, "plain here"); }};
  std::vector<AddressRange> networks{AddressRange::parse("127.0.0.0/8").value()};
};

TEST_F(SeveralAddresses, the_second_is_tried_beside_a_first_one_that_does_not_answer) {
  const Silent first;
  const Fd second = listen_on_loopback(8);
  const auto connection = connect(first.listener, second);
  poll(*connection, now_ns());
  EXPECT_EQ(greeting_at(second), -1) << "too early";
  EXPECT_LT(connection->greeting_deadline_ns(), now_ns() + second_ns) << "the transport sleeps no longer than that";
  poll(*connection, now_ns() + second_ns);
  EXPECT_GT(greeting_at(second), 0);
  EXPECT_FALSE(events.lost);
}

TEST_F(SeveralAddresses, the_first_may_still_answer_when_the_second_refuses) {
  const Silent first;
  Fd second = listen_on_loopback(8);
  const auto connection = connect(first.listener, second);
  second.reset();
  poll(*connection, now_ns() + second_ns);
  EXPECT_FALSE(events.lost);
  poll(*connection, now_ns() + 11 * second_ns);
  ASSERT_TRUE(events.lost);
  EXPECT_EQ(events.lost->code, TC_ERR_TIMEOUT);
}

TEST_F(SeveralAddresses, the_second_gets_half_of_the_time_when_the_first_is_connected_and_says_nothing) {
  const Fd first = listen_on_loopback(8), second = listen_on_loopback(8);
  const auto connection = connect(first, second);
  poll(*connection, now_ns() + 4 * second_ns);
  EXPECT_EQ(greeting_at(second), -1) << "too early";
  poll(*connection, now_ns() + 6 * second_ns);
  EXPECT_GT(greeting_at(second), 0);
  EXPECT_FALSE(events.lost);
}

TEST_F(SeveralAddresses, all_that_refuse_are_a_loss_with_a_reason) {
  Fd first = listen_on_loopback(8), second = listen_on_loopback(8);
  const auto at = local_address(first);
  const auto connection = connect(first, second);
  first.reset();
  second.reset();
  const auto refused = TcpConnection::connect(hub, std::move(*connect_to(at)), "a name", {at, at}, {}).value();
  poll(*refused, now_ns());
  ASSERT_TRUE(events.lost);
  EXPECT_EQ(events.lost->code, TC_ERR_DISCONNECTED);
  EXPECT_EQ(refused->greeting_deadline_ns(), 0u) << "it is over";
}

}  // namespace
}  // namespace tc::transport
