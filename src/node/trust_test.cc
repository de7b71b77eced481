// SPDX-License-Identifier: Apache-2.0
//
// A peer that is in no keyring and that this node connected to. It is called, and what it says about anything else counts
// for nothing.
#include "base/file.h"
#include "node/testing/keyring_kit.h"
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using test::RawPeer;
using test::operator+;
using testing::HasSubstr;
using wire::Kind;

class Foreigner : public testing::Test {
 protected:
  Foreigner() {
    net.network.make_foreign("far:1", key.public_key());
    foreigner.listen("far:1");
    friendly.says.instance = 4712;
    friendly.connect("n1");
    link = node->links().at("far:1").value();
    EXPECT_TRUE(run_until([&] { return friendly.peer && link->state() == Link::State::ready; }));
  }
  bool run_until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] { turn(); });
  }
  void turn() {
    foreigner.progress();
    friendly.progress();
    node->poll();
    node->expire();
  }
  // All that the foreigner has sent so far was taken.
  void settle() {
    foreigner.send(Kind::barrier, wire::barrier_ask, wire::encode_barrier(++barriers));
    ASSERT_TRUE(run_until([&] { return foreigner.find(Kind::barrier, wire::barrier_answer) != nullptr; }));
    for (int i = 0; i < 8; ++i) turn();
  }

  trust::KeyPair key = trust::KeyPair::fresh().value();
  test::Net net;
  std::unique_ptr<Node> node = net.make(1);
  RawPeer foreigner{net.network}, friendly{net.network};
  Link* link = nullptr;
  uint64_t barriers = 0;
};

TEST_F(Foreigner, the_event_of_a_failed_node_is_hearsay_and_not_passed_on) {
  foreigner.send(Kind::cluster_event, wire::event_gone, wire::encode_gone({12345, 1, 9, "victim", "I say so"}));
  settle();
  EXPECT_EQ(friendly.find(Kind::cluster_event), nullptr);
  EXPECT_FALSE(foreigner.bye.has_value());
}

TEST_F(Foreigner, nobody_is_asked_for_a_snapshot_in_its_name) {
  foreigner.send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4711, 1, 0}));
  settle();
  EXPECT_EQ(friendly.find(Kind::cluster_event), nullptr);
  EXPECT_EQ(foreigner.find(Kind::cluster_event), nullptr);
}

TEST_F(Foreigner, it_is_called_and_runs_nothing_here) {
  const auto echo = test::load_bundle("echo");
  foreigner.send(Kind::call_code, wire::flag_call_header, 0,
                 test::call_header(5) + test::code_section(echo) + as_bytes("x"));
  ASSERT_TRUE(run_until([&] { return foreigner.reply_to(5).has_value(); }));
  EXPECT_EQ(foreigner.reply_to(5)->status, TC_ERR_DENIED);
  EXPECT_THAT(foreigner.reply_to(5)->message, HasSubstr(key.public_key().text() + " is in no line of the keyring"));
  EXPECT_EQ(node->stat("code-loads"), 0u);
  const auto future = node->call(*link, *test::message(*node, "echo", "x"), 5000, Deadline::after_ms(0)).value();
  ASSERT_TRUE(run_until([&] { return foreigner.find(Kind::call_code) != nullptr; }));
  const auto token = wire::read_call_header(foreigner.find(Kind::call_code)->body.data()).token;
  foreigner.send(Kind::reply, 0, wire::encode_reply({.token = token, .bytes = as_bytes("done")}));
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(as_text(future->bytes), "done");
}

// One that the keyring lets in, to run signed code: it is not one of us for that.
class Guest : public Foreigner {
 protected:
  Guest() {
    EXPECT_TRUE(write_file_atomically(net.home.path() / "keyring", as_bytes(ana.line())));
    EXPECT_TRUE(node->reload_keys());
    for (int i = 0; i < 5; ++i) node->wait(Deadline::after_ms(1));
    net.network.make_foreign("far:2", ana.public_key());
    guest.says.instance = 999;
    guest.says.address = "far:2";
    guest.listen("far:2");
    guest.connect("n1");
    EXPECT_TRUE(run_until([&] { return guest.progress(), guest.peer.has_value(); }));
  }
  test::Person ana{"ana"};
  RawPeer guest{net.network};
};

TEST_F(Guest, its_event_of_a_failed_node_is_hearsay) {
  guest.send(Kind::cluster_event, wire::event_gone, wire::encode_gone({12345, 1, 9, "victim", "I say so"}));
  settle();
  for (int i = 0; i < 20; ++i) guest.progress(), turn();
  EXPECT_EQ(friendly.find(Kind::cluster_event), nullptr);
  EXPECT_FALSE(guest.bye.has_value());
}

TEST_F(Guest, answers_for_a_node_at_another_address_do_not_go_to_it) {
  EXPECT_EQ(node->links().ready_to({999, 1, "elsewhere:1"}), nullptr);
  EXPECT_NE(node->links().ready_to({999, 1, "far:2"}), nullptr);
  EXPECT_NE(node->links().ready_to({friendly.says.instance, 1, "elsewhere:1"}), nullptr);
}

// Whoever may run signed code alone makes the node connect to nowhere by calls that are refused.
TEST_F(Guest, a_refused_call_is_answered_by_its_own_link) {
  const auto echo = test::load_bundle("echo");
  const auto links = node->stat("links").value();
  for (uint64_t i = 0; i < 10; ++i)
    guest.send(Kind::call_code, wire::flag_call_header | wire::flag_return_address, 0,
               test::call_header(5) + wire::encode_return_address({99, 99, fmt::format("far:{}", i + 10)}) +
                   test::code_section(echo) + as_bytes("x"));
  ASSERT_TRUE(run_until([&] { return guest.progress(), guest.find(Kind::reply) != nullptr; }));
  const auto body = guest.find(Kind::reply)->body;
  EXPECT_EQ(guest.find(Kind::reply)->header.flags, wire::flag_return_address);
  size_t skip = 0;
  EXPECT_EQ(wire::decode_return_address(body, skip)->address, "far:10");
  EXPECT_EQ(wire::decode_reply(ByteView(body).subspan(skip))->status, TC_ERR_DENIED);
  for (int i = 0; i < 20; ++i) guest.progress(), turn();
  EXPECT_EQ(node->stat("links"), links);
}

// Of a call that this node forwarded, the peer says. A caller that is no peer is not connected to.
TEST_F(Guest, an_answer_for_another_node_is_passed_on_to_peers_alone) {
  const auto links = node->stat("links").value();
  const auto denied = [&](const wire::ReturnAddress& caller, uint64_t token) {
    const auto reply = wire::encode_reply({.token = token, .status = TC_ERR_DENIED, .message = "not here"});
    guest.send(Kind::reply, wire::flag_return_address, 0, wire::encode_return_address(caller) + reply);
  };
  denied({99, 99, "far:77"}, 1);
  denied({friendly.says.instance, 1, ""}, 2);
  ASSERT_TRUE(run_until([&] { return guest.progress(), friendly.reply_to(2).has_value(); }));
  EXPECT_EQ(friendly.reply_to(2)->message, "not here");
  const auto whole = wire::encode_return_address({99, 99, "far:77"}) + wire::encode_reply({.token = 1});
  EXPECT_EQ(node->stat("links"), links);
  EXPECT_FALSE(guest.bye.has_value());
  guest.send(Kind::reply, wire::flag_return_address, 0, ByteView(whole).first(whole.size() - 5));
  EXPECT_TRUE(run_until([&] { return guest.progress(), guest.lost.has_value() || guest.bye.has_value(); }));
}

// Code that it may run does not make the node remember whoever answers at the address that the call names.
TEST_F(Guest, an_answer_is_no_first_contact) {
  trust::KeyPair stranger = trust::KeyPair::fresh().value();
  net.network.make_foreign("far:3", stranger.public_key());
  RawPeer somebody{net.network};
  somebody.listen("far:3");
  const auto known = [&] { return read_file(net.home.path() / "known-nodes", 1 << 20).value_or(Bytes()); };
  const auto before = known();
  const auto echo = ana.signs(test::load_bundle("echo"));
  guest.send(
      Kind::call_code, wire::flag_call_header | wire::flag_return_address, 0,
      test::call_header(5) + wire::encode_return_address({99, 99, "far:3"}) + test::code_section(echo) + as_bytes("x"));
  ASSERT_TRUE(run_until([&] { return guest.progress(), node->stat("executed") == 1u; }));
  for (int i = 0; i < 50; ++i) somebody.progress(), guest.progress(), turn();
  EXPECT_FALSE(somebody.peer.has_value()) << "nothing was sent to it";
  EXPECT_EQ(known(), before);
}

TEST_F(Foreigner, it_is_not_let_in) {
  RawPeer other{net.network};
  net.network.make_foreign("far:2", key.public_key());
  other.listen("far:2");
  other.connect("n1");
  ASSERT_TRUE(run_until([&] { return other.progress(), other.lost.has_value(); }));
  EXPECT_EQ(other.lost->code, TC_ERR_DENIED);
  EXPECT_THAT(other.lost->message, HasSubstr("ifunc key trust NAME " + key.public_key().text()));
  EXPECT_FALSE(other.peer.has_value());
}

}  // namespace
}  // namespace tc::node
