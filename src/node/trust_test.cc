// SPDX-License-Identifier: Apache-2.0
//
// Which peers a node trusts, and whose code it runs.
#include "base/file.h"
#include "node/testing/keyring_kit.h"
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {
namespace {

using ::testing::HasSubstr;
using wire::Kind;

// ---- Whose code runs: what a peer's line of the keyring says, and who signed the code

class CodeTrust : public WithKeyring {
 protected:
  void expect_runs(const Future& future) {
    EXPECT_EQ(future.status, TC_OK) << future.message;
    EXPECT_EQ(text_of(future), "x");
  }
  std::string append_to_text(Node& node, const Bundle& append) { return call(node, append, "a")->message; }
  Bundle append = load_bundle("append");
  unsigned char text[8] = {};
};

TEST_F(CodeTrust, a_peer_whose_line_says_run_any_runs_what_nobody_signed) {
  start(ana.line("run=any"));
  expect_runs(*call(*peer(2, ana), echo));
}

TEST_F(CodeTrust, a_peer_whose_line_says_run_none_connects_and_runs_nothing) {
  start(ana.line("run=none"));
  expect_denied(*call(*peer(2, ana), ana.signs(echo)), "ana (keyring, line 1) may run nothing here: run=none");
  EXPECT_EQ(stat("code-loads"), 0u);
}

TEST_F(CodeTrust, a_line_that_says_nothing_more_lets_signed_code_run_and_no_other) {
  start(ana.line());
  const auto client = peer(2, ana);
  expect_denied(*call(*client, echo), "has no signature of a key in the keyring; ana (keyring, line 1)");
  EXPECT_EQ(stat("code-loads"), 0u);
  EXPECT_EQ(stat("denied-codes"), 1u);
  EXPECT_TRUE(wait_for_log("has no signature of a key in the keyring; ana (keyring, line 1)"));
  expect_runs(*call(*client, ana.signs(echo)));
}

TEST_F(CodeTrust, code_of_one_author_runs_when_it_comes_from_another_peer) {
  start(ana.line() + bob.line());
  expect_runs(*call(*peer(2, bob), ana.signs(echo)));
}

TEST_F(CodeTrust, code_of_an_unknown_author_does_not_run) {
  start(bob.line());
  expect_denied(*call(*peer(2, bob), ana.signs(echo)), "has no signature of a key in the keyring");
}

TEST_F(CodeTrust, an_unknown_peer_cannot_connect_even_with_code_of_a_known_author) {
  start(ana.line());
  const auto client = peer(2, bob);
  const auto link = client->connect("n1", Deadline::after_ms(2000));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, TC_ERR_DENIED);
  EXPECT_THAT(link.error().message, HasSubstr("ifunc key trust NAME " + bob.public_key().text()));
  EXPECT_TRUE(wait_for_log("is refused: " + bob.public_key().text()));
}

TEST_F(CodeTrust, the_signature_of_another_bundle_is_worth_nothing) {
  start(ana.line());
  auto forged = echo;
  ASSERT_TRUE(forged.add_signature(ana.signs(append).signatures().front()));
  expect_denied(*call(*peer(2, ana), forged), "the signature is wrong");
}

TEST_F(CodeTrust, code_of_an_author_whose_key_was_revoked_does_not_run) {
  start(ana.line("revoked=2026-01-01") + bob.line());
  expect_denied(*call(*peer(2, bob), ana.signs(echo)), "line 1 (ana): the key was revoked");
}

TEST_F(CodeTrust, code_of_an_author_whose_key_has_expired_does_not_run) {
  start(ana.line("until=2026-01-01") + bob.line());
  expect_denied(*call(*peer(2, bob), ana.signs(echo)), "line 1 (ana): the key expired");
}

TEST_F(CodeTrust, what_our_own_user_brought_unsigned_does_not_run_for_others_until_it_comes_signed) {
  start(ana.line());
  expect_runs(*call(*own_peer(3), echo));
  const auto client = peer(2, ana);
  expect_denied(*call(*client, echo), "has no signature of a key in the keyring");
  expect_runs(*call(*client, ana.signs(echo)));
  EXPECT_EQ(stat("code-loads"), 1u);
  // The code here has the signature now, so that it need not come with it again.
  expect_runs(*call(*peer(4, ana), echo));
}

TEST_F(CodeTrust, a_call_by_number_alone_does_not_run_code_that_others_brought) {
  start(ana.line());
  expect_runs(*call(*own_peer(3), echo));
  net.network.make_foreign("raw:1", ana.public_key());
  RawPeer raw(net.network);
  raw.listen("raw:1");
  raw.connect("n1");
  Bytes section;
  wire::append_code(section, {echo.id(), 0, 0}, {});
  ASSERT_TRUE(tc::test::run_until([&] { return raw.peer.has_value(); }, [&] { raw.progress(); }));
  raw.send(wire::Kind::call_code, wire::flag_call_header, 0, call_header(5) + section + as_bytes("x"));
  ASSERT_TRUE(tc::test::run_until([&] { return raw.reply_to(5).has_value(); }, [&] { raw.progress(); }));
  EXPECT_EQ(raw.reply_to(5)->status, TC_ERR_DENIED);
  EXPECT_THAT(raw.reply_to(5)->message, HasSubstr("has no signature of a key in the keyring"));
}

// ---- What the code may touch

TEST_F(CodeTrust, data_is_given_by_the_line_of_the_peer) {
  start(ana.line("run=any read=table"));
  target->expose("text", text, sizeof text);
  EXPECT_THAT(append_to_text(*peer(2, ana), append), HasSubstr("no text"));
  EXPECT_TRUE(wait_for_log("ifunc 'append': keyring, line 1 (ana): read=table does not allow the data 'text'"));
  reload(ana.line("run=any write=te*"));
  EXPECT_EQ(call(*peer(3, ana), append, "a")->status, TC_OK);
  running.reset();
  EXPECT_EQ(text[0], 1);
  EXPECT_EQ(text[1], 'a');
}

TEST_F(CodeTrust, signed_code_may_do_what_both_its_author_and_the_peer_may) {
  start(ana.line("read=table") + bob.line());
  target->expose("text", text, sizeof text);
  const auto client = peer(2, bob);
  EXPECT_THAT(append_to_text(*client, ana.signs(append)), HasSubstr("no text"));
  EXPECT_TRUE(wait_for_log("line 1 (ana): read=table does not allow the data 'text'"));
}

// `choose` goes on as another ifunc of this node.
TEST_F(CodeTrust, code_that_goes_on_as_another_ifunc_here_may_do_no_more_than_before) {
  using namespace std::string_view_literals;
  start(ana.line("run=any read=table"), [](Config& config) { config.id = 0; });
  running.reset();
  target->expose("text", text, sizeof text);
  ASSERT_TRUE(target->register_bundle(append));
  run();
  EXPECT_THAT(call(*peer(2, ana), load_bundle("choose"), "0 append\0a"sv)->message, HasSubstr("no text"));
  EXPECT_EQ(call(*own_peer(3), load_bundle("choose"), "0 append\0a"sv)->status, TC_OK);
  running.reset();
  EXPECT_EQ(text[0], 1);
}

// Code that the application has registered went on for as many hops as it had left.
TEST_F(CodeTrust, code_that_calls_its_own_node_again_and_again_ends_when_its_sender_may_run_nothing_any_more) {
  for (const auto& line : {std::string(), bob.line("run=any") + ana.line("run=none"), ana.line("revoked=2026-01-01")}) {
    write_keyring(ana.line("run=any"));
    target = net.make(1, [](Config& config) {
      config.id = 0;
      config.cluster = {"n1"};
    });
    ASSERT_TRUE(target->register_bundle(load_bundle("travel")));
    run();
    net.network.make_foreign("n2", ana.public_key());
    auto client = net.make(2, [](Config& config) { config.hops = 1000; });
    auto* const link = test::connect(*client, "n1");
    running.reset();
    auto future = client->call(*link, *test::travel(*client, 1000), 60'000, Deadline::after_ms(60'000));
    ASSERT_TRUE(future) << future.error().message;
    ASSERT_TRUE(run_until({client.get(), target.get()}, [&] { return target->executed() >= 3; }));
    write_keyring(line);
    ASSERT_TRUE(target->reload_keys());
    auto deadline = Deadline::never();
    (void)target->arm(deadline);  // takes the lines over
    const auto executed = target->executed();
    ASSERT_LT(executed, 900u);
    ASSERT_TRUE(run_until({client.get(), target.get()}, [&] { return (*future)->ready.load(); }));
    EXPECT_NE((*future)->status, TC_OK);
    EXPECT_TRUE(run_until({target.get()}, [&] { return target->buffers().budget().used() == 0; }));
    // One may run on another thread when the lines change.
    EXPECT_LE(target->executed(), executed + 1) << line;
    client.reset();
    target.reset();
  }
}

TEST_F(CodeTrust, signed_code_does_not_go_on_as_code_that_its_sender_could_not_send) {
  using namespace std::string_view_literals;
  start(ana.line(), [](Config& config) { config.id = 0; });
  const auto other = renamed(echo, "other");  // which `choose` does not bring along
  expect_runs(*call(*own_peer(3), other));
  const auto chooses = ana.signs(load_bundle("choose"));
  expect_denied(*call(*peer(2, ana), chooses, "0 other\0x"sv), "has no signature of a key in the keyring");
  expect_runs(*call(*peer(4, ana), ana.signs(other)));
  expect_runs(*call(*peer(5, ana), chooses, "0 other\0x"sv));
}

// ---- Libraries

TEST_F(CodeTrust, a_library_exports_what_its_senders_line_allows) {
  const auto allow = [](Config& config) { config.allowed_exports = {"greeting_*"}; };
  start(ana.line("run=any exports=none") + bob.line("run=any exports=greeting_*"), allow);
  const auto library = renamed(load_bundle("library_one"), "greeting");
  expect_denied(*call(*peer(2, ana), library), "exports=none does not allow the symbol 'greeting_");
  EXPECT_EQ(call(*peer(3, bob), library)->status, TC_OK);
}

TEST_F(CodeTrust, a_registered_library_keeps_its_signature) {
  start(ana.line("exports=greeting_*"), [](Config& config) { config.allowed_exports = {"greeting_*"}; });
  const auto library = renamed(load_bundle("library_one"), "greeting");
  const auto client = peer(2, ana);
  expect_denied(*call(*client, library), "has no signature");
  EXPECT_EQ(call(*client, ana.signs(library))->status, TC_OK);
}

// ---- On its way

class Chain : public CodeTrust {
 protected:
  // n1 forwards to n2, which knows n1 by its key alone and runs what ana has signed.
  void start_chain() {
    write_keyring(ana.line() + bob.line());
    net.network.make_foreign("n1", bob.public_key());
    const auto in_cluster = [](Config& config) { config.cluster = {"n0", "n1", "n2"}; };
    first = net.make(1, in_cluster);
    second = net.make(2, in_cluster);
    client = net.make(9);
    run_first = std::make_unique<Background>(*first);
    run_second = std::make_unique<Background>(*second);
  }
  std::shared_ptr<Future> travel(Node& from, Bundle bundle) {
    return test::call(from, *test::connect(from, "n1"), *test::travel(from, std::move(bundle), 1), 2000);
  }
  std::unique_ptr<Node> first, second, client;
  std::unique_ptr<Background> run_first, run_second;
};

TEST_F(Chain, a_forwarded_call_takes_its_signature_along) {
  start_chain();
  const auto travels = load_bundle("travel");
  const auto signed_travels = ana.signs(travels);
  const auto unsigned_call = travel(*client, travels);
  EXPECT_EQ(unsigned_call->status, TC_ERR_DENIED) << unsigned_call->message;
  // Signed later, after both nodes have seen it unsigned.
  const auto signed_call = travel(*client, signed_travels);
  EXPECT_EQ(signed_call->status, TC_OK) << signed_call->message;
}

TEST_F(Chain, code_that_was_dropped_comes_again_with_its_signature) {
  start_chain();
  const auto travels = ana.signs(load_bundle("travel"));
  EXPECT_EQ(travel(*client, travels)->status, TC_OK);
  run_second.reset();
  second->store().evict(travels.id());
  run_second = std::make_unique<Background>(*second);
  const auto again = travel(*client, travels);
  EXPECT_EQ(again->status, TC_OK) << again->message;
  run_second.reset();
  EXPECT_EQ(second->stat("needs").value(), 1u);
}

// ---- A peer that is in no keyring and that this node connected to
//
// It is called, and what it says about anything else counts for nothing.

class Foreigner : public testing::Test {
 protected:
  Foreigner() {
    net.network.make_foreign("far:1", key.public_key());
    foreigner.listen("far:1");
    friendly.says.instance = 4712;
    friendly.connect("n1");
    link = node->links().find_or_reach("far:1").value();
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
  Net net;
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
  const auto echo = load_bundle("echo");
  foreigner.send(Kind::call_code, wire::flag_call_header, 0, call_header(5) + code_section(echo) + as_bytes("x"));
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
  Person ana{"ana"};
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
  EXPECT_EQ(node->links().ready_to({999, 1, "far:2"}), nullptr) << "no line says that its key is there";
  const auto on_its_behalf = std::make_shared<const wire::Chain>(std::vector{ana.public_key().bytes});
  EXPECT_NE(node->links().ready_to({999, 1, "far:2"}, on_its_behalf), nullptr);
  EXPECT_NE(node->links().ready_to({friendly.says.instance, 1, "elsewhere:1"}), nullptr);
}

// Whoever may run signed code alone makes the node connect to nowhere by calls that are refused.
TEST_F(Guest, a_refused_call_is_answered_by_its_own_link) {
  const auto echo = load_bundle("echo");
  const auto links = node->stat("links").value();
  for (uint64_t i = 0; i < 10; ++i)
    guest.send(Kind::call_code, wire::flag_call_header | wire::flag_return_address, 0,
               call_header(5) + wire::encode_return_address({99, 99, fmt::format("far:{}", i + 10)}) +
                   code_section(echo) + as_bytes("x"));
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
  const auto echo = ana.signs(load_bundle("echo"));
  guest.send(Kind::call_code, wire::flag_call_header | wire::flag_return_address, 0,
             call_header(5) + wire::encode_return_address({99, 99, "far:3"}) + code_section(echo) + as_bytes("x"));
  ASSERT_TRUE(run_until([&] { return guest.progress(), node->stat("executed") == 1u; }));
  for (int i = 0; i < 50; ++i) somebody.progress(), guest.progress(), turn();
  EXPECT_FALSE(somebody.peer.has_value()) << "nothing was sent to it";
  node.reset();  // its thread has written all first contacts then, also those of other peers
  const auto known = read_file(net.home.path() / "known-nodes", 1 << 20).value_or(Bytes());
  EXPECT_EQ(as_text(known).find("far:3"), std::string::npos) << as_text(known);
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

// ---- A second connection of a node
//
// Two nodes that connect to each other at the same time have two connections and use one of them. Every peer learns a node's
// instance from its greeting, and could claim it.

class SecondConnection : public testing::Test {
 protected:
  SecondConnection() {
    EXPECT_TRUE(
        write_file_atomically(net.home.path() / "keyring", as_bytes(ana.line("run=any") + bob.line("run=any"))));
    node = net.make(1, [](Config& config) { config.cluster = {"n0", "n1"}; });
    net.network.make_foreign("n0", ana.public_key());
    first.says.node_id = 0;
    first.says.instance = smallest_instance;
    first.listen("n0");
    to_first = node->links().to_node(0).value();
    EXPECT_TRUE(run_until([&] { return to_first->is_ready(); }));
  }
  // With the same instance as the first one.
  void connect_second(const Person& person) {
    net.network.make_foreign("second", person.public_key());
    second.says = first.says;
    second.listen("second");
    second.connect("n1");
    ASSERT_TRUE(run_until([&] { return second.peer.has_value(); })) << "it was to be let in";
  }
  bool run_until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] { first.progress(), second.progress(), node->poll(); });
  }

  static constexpr uint64_t smallest_instance = 1;  // both sides prefer the connection that it has opened
  Person ana{"ana"}, bob{"bob"};
  Net net;
  std::unique_ptr<Node> node;
  RawPeer first{net.network}, second{net.network};
  Link* to_first = nullptr;
};

TEST_F(SecondConnection, of_a_peer_with_the_same_key_is_used_from_then_on) {
  connect_second(ana);
  EXPECT_NE(node->links().to_node(0).value(), to_first);
}

TEST_F(SecondConnection, of_an_imposter_with_a_key_of_its_own_gets_nothing_that_is_meant_for_the_node) {
  connect_second(bob);
  EXPECT_EQ(node->links().to_node(0).value(), to_first);
}

}  // namespace
}  // namespace tc::node::test
