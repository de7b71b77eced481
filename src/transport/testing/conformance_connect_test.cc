// SPDX-License-Identifier: Apache-2.0
//
// How nodes connect: greetings, refusals, connecting again. Tried on every transport.
#include "transport/testing/each_transport.h"

namespace tc::transport {
namespace {

class Connecting : public EachTransport {};

TEST_P(Connecting, both_sides_get_the_hello_and_the_origin_of_the_other) {
  a->connect(b->listen(), "it is me");
  ASSERT_TRUE(poll_until(*a, *b, [&] { return a->is_open() && b->is_open(); }));
  EXPECT_EQ(b->peer_hello, "it is me");
  EXPECT_EQ(a->peer_hello, "hello back");
  for (const auto* origin : {&a->peer->origin(), &b->peer->origin()}) {
    const bool is_local = GetParam().is_local() || GetParam().is_simulated();
    EXPECT_EQ(origin->same_user, is_local);
    EXPECT_EQ(origin->on_trusted_network, !is_local && !GetParam().is_encrypted);
    EXPECT_EQ(origin->key.has_value(), GetParam().is_encrypted);
    EXPECT_FALSE(origin->text.empty());
  }
  EXPECT_EQ(a->peer->transport(), GetParam().transport);
  EXPECT_EQ(b->peer->transport(), GetParam().transport);
  EXPECT_TRUE(a->warnings.empty());
}

TEST_P(Connecting, a_refused_peer_gets_the_reason) {
  b->opens = false;
  a->connect(b->listen());
  ASSERT_TRUE(poll_until(*a, *b, [&] { return b->accepted == 1; }));
  b->peer->refuse({TC_ERR_VERSION, "your protocol is 8 when ours is 9"});
  ASSERT_TRUE(poll_until(*a, *b, [&] { return a->lost.has_value(); }));
  EXPECT_NE(a->lost->message.find("your protocol is 8 when ours is 9"), std::string::npos) << a->lost->message;
  EXPECT_EQ(a->lost->code, TC_ERR_VERSION);
}

TEST_P(Connecting, no_byte_is_read_from_a_peer_of_a_refused_origin) {
  b->admits = [](const Origin&) { return false; };
  a->connect(b->listen());
  ASSERT_TRUE(poll_until(*a, *b, [&] { return a->lost.has_value(); }));
  EXPECT_NE(a->lost->message.find("this origin is refused"), std::string::npos) << a->lost->message;
  EXPECT_EQ(a->lost->code, TC_ERR_DENIED);
  EXPECT_EQ(b->accepted, 0u);
}

TEST_P(Connecting, two_connections_between_the_same_nodes_are_independent) {
  const std::string address = b->listen();
  a->connect(address);
  ASSERT_TRUE(poll_until(*a, *b, [&] { return a->opened == 1 && b->opened == 1; }));
  const auto first = std::move(a->peer);
  a->connect(address);
  ASSERT_TRUE(poll_until(*a, *b, [&] { return a->opened == 2 && b->opened == 2; }));
  auto& b_first = *b->earlier.at(0);
  ASSERT_TRUE(put_frame(first->out(), 1, 8) && put_frame(a->out(), 2, 8));
  ASSERT_TRUE(poll_until(*a, *b, [&] { return b->in().peek() != 0 && b_first.in().peek() != 0; }));
  EXPECT_EQ(take_frame(b_first.in(), 1), Took::frame);
  EXPECT_EQ(take_frame(b->in(), 2), Took::frame);
  first->close();
  ASSERT_TRUE(poll_until(*a, *b, [&] { return b->losses == 1; }));
  ASSERT_TRUE(put_frame(a->out(), 3, 8));
  EXPECT_EQ(arrives(3), Took::frame);
  EXPECT_EQ(a->losses, 0u);
}

TEST_P(Connecting, connecting_again_after_closing_works_many_times) {
  const std::string address = b->listen();
  for (uint32_t round = 0; round < 20; ++round) {
    a->drop_peer();
    b->drop_peer();
    a->connect(address);
    ASSERT_TRUE(poll_until(*a, *b, [&] { return (a->is_open() && b->is_open()) || a->lost || b->lost; })) << round;
    ASSERT_FALSE(a->lost) << round << ": " << a->lost->message;
    ASSERT_FALSE(b->lost) << round << ": " << b->lost->message;
    ASSERT_TRUE(put_frame(a->out(), round, 100));
    ASSERT_EQ(arrives(round), Took::frame) << round;
    a->peer->close();
    a->peer.reset();
    ASSERT_TRUE(poll_until(*a, *b, [&] { return b->lost.has_value(); })) << round;
  }
  EXPECT_EQ(a->losses, 0u);
}

TEST_P(Connecting, nodes_that_were_restarted_connect_again_at_the_same_address) {
  const std::string address = b->listen();
  for (uint32_t round = 0; round < 5; ++round) {
    a->connect(address);
    ASSERT_TRUE(poll_until(*a, *b, [&] { return a->is_open() && b->is_open(); })) << round;
    ASSERT_TRUE(put_frame(a->out(), round, 100) && put_frame(b->out(), round, 50));
    ASSERT_EQ(arrives(round), Took::frame) << round;
    ASSERT_TRUE(poll_until(*a, *b, [&] { return take_frame(a->in(), round) == Took::frame; })) << round;
    const bool a_dies_first = round % 2 == 0;
    if (a_dies_first) a->peer.reset(), a.reset();
    b->earlier.clear(), b->peer.reset(), b.reset();
    if (!a_dies_first) {
      ASSERT_TRUE(a->until([&] { return a->lost.has_value(); })) << round;
      a->peer.reset(), a.reset();
    }
    a = make(), b = make();
    ASSERT_EQ(b->listen(address), address);
  }
}

TEST_P(Connecting, a_node_connects_to_itself) {
  const std::string address = a->listen();
  auto self = a->transport->connect(address, as_bytes(std::string_view("me"))).value();
  ASSERT_TRUE(a->until([&] { return a->opened == 2; }));
  EXPECT_EQ(a->accepted, 1u);
  ASSERT_TRUE(put_frame(self->out(), 1, 100));
  EXPECT_TRUE(a->until([&] { return take_frame(a->in(), 1) == Took::frame; }));
}

TEST_P(Connecting, connecting_to_an_address_without_a_listener_is_an_error_that_names_it) {
  const auto made = a->transport->connect("127.0.0.1:1", {});
  const auto reason = [&] {
    if (!made) return made.error();
    EXPECT_TRUE(a->until([&] { return a->lost.has_value(); }));
    return a->lost.value_or(Error{});
  }();
  const std::string where = made ? (*made)->peer_address() + reason.message : reason.message;
  EXPECT_NE(where.find("127.0.0.1:1"), std::string::npos) << where;
}

TEST_P(Connecting, frames_that_came_before_the_greeting_was_read_are_there_when_the_connection_opens) {
  b->opens = false;
  a->connect(b->listen());
  ASSERT_TRUE(poll_until(*a, *b, [&] { return b->accepted == 1; }));
  ASSERT_TRUE(b->peer->open(as_bytes(std::string_view("late"))));
  ASSERT_TRUE(put_frame(b->out(), 0, 8));  // a has not read the greeting yet
  b->out().flush();
  for (int i = 0; i < 50; ++i) b->poll();
  ASSERT_TRUE(poll_until(*a, *b, [&] { return a->is_open(); }));
  ASSERT_TRUE(poll_until(*a, *b, [&] { return take_frame(a->in(), 0) == Took::frame; }));
  EXPECT_EQ(a->peer_hello, "late");
}

INSTANTIATE_TEST_SUITE_P(Conformance, Connecting, testing::ValuesIn(kinds), name_of_kind);

}  // namespace
}  // namespace tc::transport
