// SPDX-License-Identifier: Apache-2.0
//
// Whose code runs: what a peer's line of the keyring says, and who signed the code.
#include "node/testing/keyring_kit.h"

namespace tc::node {
namespace {

using test::expect_denied;
using testing::HasSubstr;

class CodeTrust : public test::WithKeyring {
 protected:
  void expect_runs(const Future& future) {
    EXPECT_EQ(future.status, TC_OK) << future.message;
    EXPECT_EQ(test::text_of(future), "x");
  }
  std::string append_to_text(Node& node, const Bundle& append) { return call(node, append, "a")->message; }
  Bundle append = test::load_bundle("append");
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
  test::RawPeer raw(net.network);
  raw.listen("raw:1");
  raw.connect("n1");
  Bytes section;
  wire::append_code(section, {echo.id(), 0, 0}, {});
  using test::operator+;
  ASSERT_TRUE(tc::test::run_until([&] { return raw.peer.has_value(); }, [&] { raw.progress(); }));
  raw.send(wire::Kind::call_code, wire::flag_call_header, 0, test::call_header(5) + section + as_bytes("x"));
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
  EXPECT_THAT(call(*peer(2, ana), test::load_bundle("choose"), "0 append\0a"sv)->message, HasSubstr("no text"));
  EXPECT_EQ(call(*own_peer(3), test::load_bundle("choose"), "0 append\0a"sv)->status, TC_OK);
  running.reset();
  EXPECT_EQ(text[0], 1);
}

TEST_F(CodeTrust, signed_code_does_not_go_on_as_code_that_its_sender_could_not_send) {
  using namespace std::string_view_literals;
  start(ana.line(), [](Config& config) { config.id = 0; });
  const auto other = test::renamed(echo, "other");  // which `choose` does not bring along
  expect_runs(*call(*own_peer(3), other));
  const auto chooses = ana.signs(test::load_bundle("choose"));
  expect_denied(*call(*peer(2, ana), chooses, "0 other\0x"sv), "has no signature of a key in the keyring");
  expect_runs(*call(*peer(4, ana), ana.signs(other)));
  expect_runs(*call(*peer(5, ana), chooses, "0 other\0x"sv));
}

// ---- Libraries

TEST_F(CodeTrust, a_library_exports_what_its_senders_line_allows) {
  const auto allow = [](Config& config) { config.allowed_exports = {"greeting_*"}; };
  start(ana.line("run=any exports=none") + bob.line("run=any exports=greeting_*"), allow);
  const auto library = test::renamed(test::load_bundle("library_one"), "greeting");
  expect_denied(*call(*peer(2, ana), library), "exports=none does not allow the symbol 'greeting_");
  EXPECT_EQ(call(*peer(3, bob), library)->status, TC_OK);
}

TEST_F(CodeTrust, a_registered_library_keeps_its_signature) {
  start(ana.line("exports=greeting_*"), [](Config& config) { config.allowed_exports = {"greeting_*"}; });
  const auto library = test::renamed(test::load_bundle("library_one"), "greeting");
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
    run_first = std::make_unique<test::Background>(*first);
    run_second = std::make_unique<test::Background>(*second);
  }
  std::shared_ptr<Future> travel(Node& from, Bundle bundle) {
    test::Travel payload;
    payload.hops_to_go = 1;
    const std::string_view bytes(reinterpret_cast<const char*>(&payload), sizeof payload);
    return test::call(from, *test::connect(from, "n1"), *test::message(from, std::move(bundle), bytes), 2000);
  }
  std::unique_ptr<Node> first, second, client;
  std::unique_ptr<test::Background> run_first, run_second;
};

TEST_F(Chain, a_forwarded_call_takes_its_signature_along) {
  start_chain();
  const auto travels = test::load_bundle("travel");
  const auto signed_travels = ana.signs(travels);
  const auto unsigned_call = travel(*client, travels);
  EXPECT_EQ(unsigned_call->status, TC_ERR_DENIED) << unsigned_call->message;
  // Signed later, after both nodes have seen it unsigned.
  const auto signed_call = travel(*client, signed_travels);
  EXPECT_EQ(signed_call->status, TC_OK) << signed_call->message;
}

TEST_F(Chain, code_that_was_dropped_comes_again_with_its_signature) {
  start_chain();
  const auto travels = ana.signs(test::load_bundle("travel"));
  EXPECT_EQ(travel(*client, travels)->status, TC_OK);
  run_second.reset();
  second->store().evict(travels.id());
  run_second = std::make_unique<test::Background>(*second);
  const auto again = travel(*client, travels);
  EXPECT_EQ(again->status, TC_OK) << again->message;
  run_second.reset();
  EXPECT_EQ(second->stat("needs").value(), 1u);
}

}  // namespace
}  // namespace tc::node
