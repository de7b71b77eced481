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
