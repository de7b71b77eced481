// SPDX-License-Identifier: Apache-2.0
//
// Connections to peers that are named: to "host:7001" instead of "127.0.0.1:7001".
#include "transport/network/named_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "transport/testing/name_server.h"
#include "transport/testing/test_node.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

class NamedPeer : public testing::TestWithParam<Kind> {
 protected:
  static NetworkOptions with(const NameServer& server) {
    auto options = options_of(GetParam());
    options.resolve_name = server.resolver();
    return options;
  }
  // The address of b, by name.
  std::string name_of(const std::string& address) { return "host" + address.substr(address.rfind(':')); }
  bool until(const std::function<bool()>& done) {
    return a->until([&] {
      b.poll();
      return done();
    });
  }

  NameServer server;
  TestNode b{GetParam()};
  std::unique_ptr<TestNode> a = std::make_unique<TestNode>(with(server));
};

TEST_P(NamedPeer, greets_when_its_name_was_resolved_and_frames_go_by_the_transport_that_its_address_gives) {
  const std::string address = name_of(b.listen());
  auto& peer = a->connect(address, "it is me");
  EXPECT_EQ(peer.transport(), "");
  EXPECT_EQ(peer.peer_address(), address);
  EXPECT_FALSE(put_frame(peer.out(), 1, 8)) << "it is not open";
  EXPECT_EQ(peer.in().peek(), 0u);
  ASSERT_TRUE(until([&] { return server.asked("host") == 1; }));
  EXPECT_EQ(a->opened, 0u);
  server.answer("host", resolve("127.0.0.1:0", false).value());
  ASSERT_TRUE(until([&] { return a->is_open() && b.is_open(); })) << a->lost.value_or(Error{}).message;
  EXPECT_EQ(b.peer_hello, "it is me");
  EXPECT_EQ(peer.transport(), GetParam().transport);
  EXPECT_EQ(peer.is_polled(), GetParam().transport == "shm");
  EXPECT_EQ(peer.peer_address(), address);
  EXPECT_EQ(peer.origin().key.has_value(), GetParam().is_encrypted);
  ASSERT_TRUE(put_frame(a->out(), 1, 100) && put_frame(b.out(), 2, 100));
  EXPECT_TRUE(until([&] { return take_frame(b.in(), 1) == Took::frame; }));
  EXPECT_TRUE(until([&] { return take_frame(a->in(), 2) == Took::frame; }));
  peer.close();
  EXPECT_TRUE(until([&] { return b.lost.has_value(); }));
  EXPECT_EQ(a->losses, 0u);
}

TEST_P(NamedPeer, is_found_by_a_node_that_sleeps) {
  a->connect(name_of(b.listen()));
  const std::jthread other([&](const std::stop_token& stop) {
    while (server.asked("host") == 0 && !stop.stop_requested()) b.sleep(1);
    server.answer("host", resolve("127.0.0.1:0", false).value());
    while (!stop.stop_requested()) b.sleep(1);
  });
  while (a->opened == 0 && !a->lost) a->sleep(60'000);  // unless it is woken, the peer is lost after 10 s
  EXPECT_EQ(a->opened, 1u) << a->lost->message;
}

TEST_P(NamedPeer, whose_name_is_unknown_is_lost_with_the_reason) {
  auto& peer = a->connect("host:1");
  peer.set_owner(this);
  server.answer("host", fail(TC_ERR_NOT_FOUND, "there is no host"));
  ASSERT_TRUE(until([&] { return a->lost.has_value(); }));
  EXPECT_EQ(a->lost->message, "there is no host");
  EXPECT_EQ(a->lost->code, TC_ERR_NOT_FOUND);
  for (int i = 0; i < 20; ++i) a->poll();
  EXPECT_EQ(a->losses, 1u) << "it is told once";
  EXPECT_FALSE(peer.open({}));
  a->drop_peer();
}

TEST_P(NamedPeer, that_is_closed_while_its_name_is_resolved_is_not_heard_of_again) {
  a->connect("silent:1").close();
  a->peer->refuse(Error{TC_ERR_DENIED, "no"});
  a->peer->drop();
  for (int i = 0; i < 20; ++i) a->poll();
  EXPECT_EQ(a->losses, 0u);
  a->drop_peer();
  a->connect("silent:2");
  a->drop_peer();
  a->connect("silent:3");
  a->sleep(20);
  a->drop_peer();
  a.reset();  // the name server is silent until the test ends
}

TEST_P(NamedPeer, that_is_written_as_a_number_needs_no_name_server) {
  auto options = options_of(GetParam());
  options.resolve_name = [](const std::string&) -> NameLookups::Found { std::abort(); };
  a = std::make_unique<TestNode>(options);
  a->connect(b.listen());
  EXPECT_TRUE(until([&] { return a->is_open() && b.is_open(); }));
}

TEST_P(NamedPeer, of_which_the_first_addresses_do_not_connect_is_found_at_another_one) {
  auto addresses = resolve("[::1]:0", false).value();  // b listens at 127.0.0.1 alone
  addresses.push_back(resolve("127.0.0.1:0", false)->front());
  server.answer("host", addresses);
  a->connect(name_of(b.listen()));
  EXPECT_TRUE(until([&] { return a->is_open() && b.is_open(); })) << a->lost.value_or(Error{}).message;
}

TEST_P(NamedPeer, is_lost_when_nothing_listens_at_its_address) {
  server.answer("host", resolve("127.0.0.1:0", false).value());
  a->connect("host:1");
  ASSERT_TRUE(until([&] { return a->lost.has_value(); }));
  EXPECT_FALSE(a->lost->message.empty());
}

constexpr Kind tested[] = {ring_kind, socket_kind, encrypted_kind};
INSTANTIATE_TEST_SUITE_P(Network, NamedPeer, testing::ValuesIn(tested),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- Time, on a clock of the test's

struct OneLoss final : Events {
  Status may_connect(const Origin&) override { return {}; }
  void on_accept(std::unique_ptr<Connection>, ByteView) override {}
  void on_greeting(Connection&, ByteView) override {}
  void on_frames(Connection&) override {}
  void on_lost(Connection&, const Error& why) override { reason = why; }
  std::optional<Error> reason;
};

TEST(NamedPeerInTime, that_no_name_server_tells_of_is_lost_after_the_time_that_a_greeting_has) {
  NameServer server;
  OneLoss events;
  PollState poll_state;
  Hub hub{events, poll_state, [](trust::TlsRole) { return fail(TC_ERR_UNSUPPORTED, "not here"); }};
  ASSERT_TRUE(hub.poller.open());
  NameLookups lookups(hub.poller, server.resolver());
  NamedConnection::List list;
  const auto before = now_ns();
  const auto peer = NamedConnection::start(hub, lookups, list, "silent:1", {"silent", 1}, [](const auto&) {
                      return fail(TC_ERR_INTERNAL, "there are no addresses");
                    }).value();
  peer->check_deadline(before + SocketConnection::greeting_ns - 1);
  EXPECT_FALSE(peer->deliver_loss());
  peer->check_deadline(peer->greeting_deadline_ns());
  EXPECT_EQ(peer->greeting_deadline_ns(), 0u);
  ASSERT_TRUE(peer->deliver_loss());
  EXPECT_EQ(events.reason->code, TC_ERR_TIMEOUT);
  EXPECT_THAT(events.reason->message, HasSubstr("was not resolved"));
  EXPECT_FALSE(peer->deliver_loss());
}

}  // namespace
}  // namespace tc::transport
