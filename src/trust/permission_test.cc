// SPDX-License-Identifier: Apache-2.0
#include "trust/permission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trust/code_signature.h"
#include "trust/testing/keys.h"
#include "wire/testing/bundles.h"

namespace tc::trust {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::key_pair;
using testing::public_key;

const Time now = parse_time("2026-11-23").value();

Rules rules_of(const std::vector<std::string>& lines) {
  std::string text;
  unsigned char key = 1;
  for (const auto& each : lines) {
    const auto blank = std::min(each.find(' '), each.size());
    text += fmt::format("{} {}{}\n", each.substr(0, blank), public_key(key++).text(), each.substr(blank));
  }
  Rules rules;
  rules.keyring = Keyring::parse(text, "/etc/ring").value();
  return rules;
}

Peer with_key(unsigned char key) { return {.text = "10.0.0.7:41234", .host = "10.0.0.7", .key = public_key(key)}; }

std::string denial(const Rules& rules, const Peer& peer) {
  const auto rights = rights_of(rules, peer, now);
  if (rights) return "";
  EXPECT_EQ(rights.error().code, TC_ERR_DENIED);
  return rights.error().message;
}

std::string denial(const Rules& rules, unsigned char sender, const Bundle& bundle, bool has_cells = false) {
  const auto code =
      rights_of_code(rules, rights_of(rules, with_key(sender), now).value(), nullptr, bundle, has_cells, now);
  if (code) return "";
  EXPECT_EQ(code.error().code, TC_ERR_DENIED);
  return code.error().message;
}

Bundle signed_by(unsigned char key, Bundle bundle = tc::testing::four_slices()) {
  EXPECT_TRUE(sign_bundle(bundle, key_pair(key)));
  return bundle;
}

TEST(MayConnect, our_own_user_and_whoever_is_on_a_trusted_network_run_anything) {
  const Peer user{.text = "unix", .host = "", .same_user = true, .key = {}};
  const Peer neighbour{.text = "10.0.0.7:1", .host = "10.0.0.7", .on_trusted_network = true, .key = {}};
  for (const auto& peer : {user, neighbour}) {
    const auto rights = rights_of({}, peer, now);
    ASSERT_TRUE(rights) << rights.error().message;
    EXPECT_EQ(rights->run(), Run::any);
    EXPECT_TRUE(rights_of_code({}, *rights, nullptr, tc::testing::four_slices(), false, now));
  }
}

TEST(MayConnect, this_nodes_own_key_and_keys_of_the_launcher_run_anything) {
  Rules rules;
  rules.own_key = public_key(5);
  rules.vouched = {public_key(6)};
  EXPECT_EQ(rights_of(rules, with_key(5), now)->run(), Run::any);
  EXPECT_EQ(rights_of(rules, with_key(6), now)->run(), Run::any);
  EXPECT_NE(denial(rules, with_key(7)), "");
}

TEST(MayConnect, a_stranger_is_told_the_command_that_lets_it_in) {
  const auto key = public_key(9).text();
  EXPECT_EQ(denial(rules_of({"ana"}), with_key(9)),
            key + " is in no line of the keyring of this node; its operator can let it in with `ifunc key trust NAME " +
                key + "`");
  EXPECT_THAT(denial({}, with_key(9)), HasSubstr("this node has no keyring"));
  EXPECT_THAT(denial({}, {.text = "10.0.0.7:1", .host = "10.0.0.7", .key = {}}),
              HasSubstr("10.0.0.7:1 is not trusted: without a key only user "));
}

TEST(MayConnect, whoever_has_our_number_and_is_not_our_user_is_told_why) {
  const auto said = denial({}, {.text = "process 7 of user 65534",
                                .host = "127.0.0.1",
                                .why_not_same_user = "that number proves nothing",
                                .key = {}});
  EXPECT_THAT(said,
              HasSubstr(fmt::format("process 7 of user 65534 is not trusted, though this node runs as user {}, too: "
                                    "that number proves nothing, or connect by TCP, with a key",
                                    ::geteuid())));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("only user")));
}

TEST(MayConnect, trust_any_lets_everybody_in_but_not_those_whom_a_line_excludes) {
  auto rules = rules_of({"ana hosts=10.0.0.0/8", "bob hosts=192.168.0.0/16", "eve revoked=2026-01-01",
                         "max until=2026-11-23", "tim until=2026-11-24"});
  rules.trust_any = true;
  EXPECT_EQ(rights_of(rules, with_key(9), now)->run(), Run::any);
  EXPECT_EQ(rights_of(rules, with_key(1), now)->run(), Run::signed_code);
  EXPECT_EQ(denial(rules, with_key(2)), "keyring, line 2 (bob): hosts=192.168.0.0/16, and it is at 10.0.0.7");
  EXPECT_EQ(denial(rules, with_key(3)), "keyring, line 3 (eve): the key was revoked at 2026-01-01T00:00:00Z");
  EXPECT_EQ(denial(rules, with_key(4)), "keyring, line 4 (max): the key expired at 2026-11-23T00:00:00Z");
  EXPECT_TRUE(rights_of(rules, with_key(5), now));
}

TEST(MayConnect, a_revoked_key_may_nothing_whatever_else_it_is) {
  auto rules = rules_of({"eve revoked=2026-01-01"});
  rules.own_key = public_key(1);
  rules.vouched = {public_key(1)};
  auto peer = with_key(1);
  peer.same_user = peer.on_trusted_network = true;
  EXPECT_THAT(denial(rules, peer), HasSubstr("revoked"));
}

TEST(MayConnect, nobody_by_a_key_where_the_keyring_could_not_be_read) {
  Rules rules{.trust_any = true, .own_key = public_key(5), .vouched = {public_key(6)}, .keyring = {}};
  rules.keyring_error = Error{TC_ERR_INVALID, "/etc/ring, line 3: it is wrong"};
  for (const unsigned char key : {5, 6, 9})
    EXPECT_THAT(denial(rules, with_key(key)), HasSubstr("cannot be read: /etc/ring, line 3: it is wrong"));
  EXPECT_TRUE(rights_of(rules, {.text = "unix", .host = "", .same_user = true, .key = {}}, now));
  const auto chain = std::make_shared<const wire::Chain>(std::vector{public_key(5).bytes});
  const auto code = rights_of_code(rules, Rights::all("us", "us"), chain, tc::testing::four_slices(), false, now);
  ASSERT_FALSE(code);
  EXPECT_THAT(code.error().message, HasSubstr("/etc/ring, line 3"));
}

TEST(MayRun, unsigned_code_only_for_those_whose_line_says_any) {
  const auto rules = rules_of({"ana", "bob run=any", "max run=none"});
  const auto bundle = tc::testing::four_slices();
  EXPECT_EQ(denial(rules, 1, bundle), fmt::format("code 'golden' ({}) has no signature of a key in the keyring; ana "
                                                  "(keyring, line 1) may run signed code only",
                                                  bundle.id().short_hex()));
  EXPECT_EQ(denial(rules, 2, bundle), "");
  EXPECT_EQ(denial(rules, 3, bundle), "keyring, line 3 (max): run=none");
}

TEST(MayRun, code_that_another_key_of_the_keyring_signed) {
  const auto rules = rules_of({"ana", "bob"});
  EXPECT_EQ(denial(rules, 1, signed_by(1)), "");
  EXPECT_EQ(denial(rules, 1, signed_by(2)), "");
  EXPECT_THAT(denial(rules, 1, signed_by(3)), HasSubstr("has no signature of a key in the keyring"));
  EXPECT_EQ(denial(rules, 1, signed_by(2, signed_by(3))), "") << "a signature that is not known does no harm";
}

TEST(MayRun, not_by_the_signature_of_a_key_that_may_not) {
  const auto rules = rules_of({"ana", "bob run=none", "eve revoked=2026-01-01", "max until=2026-01-01"});
  EXPECT_THAT(denial(rules, 1, signed_by(2)),
              HasSubstr("signature by " + public_key(2).text() + ": keyring, line 2 (bob): run=none"));
  EXPECT_THAT(denial(rules, 1, signed_by(3)), HasSubstr("keyring, line 3 (eve): the key was revoked"));
  EXPECT_THAT(denial(rules, 1, signed_by(4)), HasSubstr("keyring, line 4 (max): the key expired"));
  EXPECT_EQ(denial(rules, 1, signed_by(1, signed_by(2))), "");
}

TEST(MayRun, not_by_a_wrong_signature_which_is_told_apart_from_none) {
  auto bundle = tc::testing::four_slices();
  auto signature = signed_by(1, tc::testing::a_library()).signatures().front();
  ASSERT_TRUE(bundle.add_signature(signature));
  EXPECT_THAT(denial(rules_of({"ana"}), 1, bundle),
              HasSubstr("keyring, line 1 (ana): the signature is wrong: it is not one of this code"));
  EXPECT_EQ(denial(rules_of({"ana"}), 1, signed_by(1, bundle)), "") << "the right one behind it counts";
}

TEST(MayRun, only_so_many_wrong_signatures_are_checked) {
  auto bundle = tc::testing::four_slices();
  CodeSignature wrong;
  wrong.key = public_key(1).bytes;
  for (unsigned i = 0; i < 20; ++i) {
    wrong.signature[0] = static_cast<std::byte>(i);
    ASSERT_TRUE(bundle.add_signature(wrong));
  }
  EXPECT_THAT(denial(rules_of({"ana"}), 1, signed_by(1, bundle)),
              HasSubstr("more than 8 signatures are not looked at"));
}

TEST(MayRun, in_a_cell_only_where_there_are_cells) {
  const auto rules = rules_of({"ana in=cell run=any", "bob in=cell", "max"});
  EXPECT_THAT(denial(rules, 1, tc::testing::four_slices()),
              AllOf(HasSubstr("line 1 (ana): in=cell"), HasSubstr("does not have")));
  EXPECT_THAT(denial(rules, 3, signed_by(2)), HasSubstr("line 2 (bob): in=cell"));
  EXPECT_EQ(denial(rules, 3, signed_by(2), true), "");
}

TEST(MayRun, with_libraries_and_exports_that_sender_and_author_both_may) {
  const auto rules = rules_of({"ana libs=libsqlite3*", "bob libs=none", "max exports=other*"});
  EXPECT_EQ(denial(rules, 1, signed_by(1)), "");
  EXPECT_EQ(denial(rules, 2, signed_by(1)),
            "keyring, line 2 (bob): libs=none does not allow the library 'libsqlite3.so.0'");
  EXPECT_THAT(denial(rules, 1, signed_by(2)), HasSubstr("keyring, line 2 (bob): libs=none does not allow"));
  EXPECT_EQ(denial(rules, 1, signed_by(3, signed_by(2))), "") << "another author may";
  EXPECT_EQ(denial(rules, 3, signed_by(1, tc::testing::a_library())),
            "keyring, line 3 (max): exports=other* does not allow the symbol 'hash'");
}

TEST(MayUse, data_that_sender_and_author_both_may) {
  const auto rules = rules_of({"ana read=table*,log write=log", "bob read=table1 write=out"});
  const auto peer = rights_of(rules, with_key(1), now).value();
  const auto code = rights_of_code(rules, peer, nullptr, signed_by(2), false, now).value();
  ASSERT_TRUE(code.author);
  EXPECT_EQ(code.author->whose(), "bob (keyring, line 2)");
  EXPECT_TRUE(code.may_read("table1"));
  EXPECT_EQ(code.may_read("table2").error().message,
            "keyring, line 2 (bob): read=table1 does not allow the data 'table2'");
  EXPECT_EQ(code.may_write("log").error().message, "keyring, line 2 (bob): write=out does not allow the data 'log'");
  EXPECT_EQ(code.may_write("out").error().message, "keyring, line 1 (ana): write=log does not allow the data 'out'");
  EXPECT_TRUE(peer.may_read("log") && peer.may_write("log"));
  EXPECT_FALSE(peer.may_write("table1"));
}

TEST(MayUse, nothing_unless_something_else_is_said) {
  const SharedRights shared;
  for (const auto& rights : {CodeRights{}, CodeRights{.peer = Rights::none()}, *shared}) {
    EXPECT_FALSE(rights.is_all());
    EXPECT_EQ(rights.peer.run(), Run::none);
    for (const auto& status : {rights.may_read("table"), rights.may_write("table"), rights.may_export("symbol"),
                               rights.may_use_library("libm.so.6"), rights.may_read("")}) {
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().code, TC_ERR_DENIED);
      EXPECT_THAT(status.error().message, HasSubstr("is asked for by nobody, who may do nothing"));
    }
  }
  EXPECT_FALSE(rights_of_code({}, Rights::none(), nullptr, tc::testing::four_slices(), true, now));
  EXPECT_TRUE((CodeRights{.peer = Rights::all("we", "we")}.is_all()));
}

TEST(MayConnect, a_line_with_hosts_binds_the_nodes_own_key_and_one_that_the_launcher_vouches_for) {
  auto rules = rules_of({"own hosts=10.0.0.8", "vouched hosts=10.0.0.8"});
  rules.own_key = public_key(1);
  rules.vouched = {public_key(2)};
  EXPECT_THAT(denial(rules, with_key(1)), HasSubstr("line 1 (own): hosts=10.0.0.8, and it is at 10.0.0.7"));
  EXPECT_THAT(denial(rules, with_key(2)), HasSubstr("line 2 (vouched): hosts=10.0.0.8, and it is at 10.0.0.7"));
  for (unsigned char key = 1; key <= 2; ++key) {
    auto peer = with_key(key);
    peer.host = "10.0.0.8";
    EXPECT_EQ(denial(rules, peer), "");
    EXPECT_TRUE(rights_of(rules, peer, now)->is_all());
  }
}

TEST(MayUse, what_may_be_written_may_be_read) {
  const auto rights = rights_of(rules_of({"ana read=a write=b"}), with_key(1), now).value();
  EXPECT_TRUE(rights.may_read("b"));
  EXPECT_FALSE(rights.may_read("c"));
}

// ---- The same principal, with the same rights

// Of code that `sender` calls on behalf of those keys, by the lines of a keyring.
SharedRights decided(const std::vector<std::string>& lines, unsigned char sender, const Bundle& bundle,
                     const std::vector<unsigned char>& behalf = {}) {
  const auto rules = rules_of(lines);
  std::vector<wire::Chain::Key> keys;
  for (const auto key : behalf) keys.push_back(public_key(key).bytes);
  const auto chain = keys.empty() ? nullptr : std::make_shared<const wire::Chain>(std::move(keys));
  const auto peer = rights_of(rules, with_key(sender), now).value();
  return SharedRights(rights_of_code(rules, peer, chain, bundle, true, now).value());
}

TEST(SamePrincipal, is_one_key_with_one_set_of_rights_whatever_it_runs_and_however_its_line_is_written) {
  const auto code = signed_by(3);
  const std::string bob = "bob run=any";
  const auto ana = decided({"ana run=any read=a", bob, "eve"}, 1, code);
  EXPECT_TRUE(ana.is_same(ana));
  EXPECT_TRUE(ana.is_same(decided({"anna run=any read=a hosts=10.0.0.0/8 rate=7", bob}, 1, code)));
  for (const auto* const other :
       {"ana run=any", "ana run=any read=a,b", "ana run=any read=a write=a", "ana run=any read=a libs=libsqlite3.so.0",
        "ana run=any read=a exports=hash*", "ana run=any read=a in=cell", "ana read=a"})
    EXPECT_FALSE(ana.is_same(decided({other, bob, "eve"}, 1, code))) << other;
  EXPECT_FALSE(ana.is_same(decided({"bob run=any", "ana run=any read=a"}, 2, code)));
  EXPECT_FALSE(SharedRights().is_same(SharedRights())) << "nobody is nobody else";
}

TEST(SamePrincipal, is_not_one_whose_code_has_another_author_or_that_calls_for_others) {
  const std::vector<std::string> lines = {"ana", "bob run=any", "eve run=any", "max run=any"};
  const auto by_ana = decided(lines, 1, signed_by(1));
  EXPECT_TRUE(by_ana.is_same(decided(lines, 1, signed_by(1))));
  EXPECT_FALSE(by_ana.is_same(decided(lines, 1, signed_by(2))));
  const auto code = tc::testing::four_slices();
  const auto alone = decided(lines, 2, code), for_eve = decided(lines, 2, code, {3});
  EXPECT_TRUE(for_eve.is_same(decided(lines, 2, code, {3})));
  EXPECT_FALSE(alone.is_same(for_eve) || for_eve.is_same(alone));
  EXPECT_FALSE(for_eve.is_same(decided(lines, 2, code, {4})));
  EXPECT_FALSE(for_eve.is_same(decided(lines, 2, code, {3, 4})));
  EXPECT_FALSE(for_eve.is_same(decided(lines, 3, code, {2})));
}

// As code that calls its own node: the peer stands in its own chain.
TEST(SamePrincipal, is_one_that_is_named_in_its_own_chain) {
  const std::vector<std::string> lines = {"ana run=any", "bob run=any"};
  const auto code = tc::testing::four_slices();
  EXPECT_TRUE(decided(lines, 1, code).is_same(decided(lines, 1, code, {1})));
  EXPECT_FALSE(decided(lines, 1, code).is_same(decided(lines, 1, code, {1, 2})));
}

TEST(SamePrincipal, is_one_user_or_host_or_key_of_all_rights_by_whichever_connection) {
  Rules rules{.trust_any = true, .keyring = {}};
  const auto all = [&](const Peer& peer) { return CodeRights{.peer = rights_of(rules, peer, now).value()}; };
  const Peer user{.text = "unix", .host = "", .same_user = true, .key = {}};
  const Peer near{.text = "10.0.0.7:1", .host = "10.0.0.7", .on_trusted_network = true, .key = {}};
  auto by_another_port = near, on_another_host = near, key_by_another_port = with_key(1);
  by_another_port.text = "10.0.0.7:2";
  on_another_host.host = "10.0.0.8";
  key_by_another_port.text = "10.0.0.9:2";
  EXPECT_TRUE(all(user).is_same(all(user)));
  EXPECT_TRUE(all(near).is_same(all(by_another_port)));
  EXPECT_TRUE(all(with_key(1)).is_same(all(key_by_another_port)));
  EXPECT_FALSE(all(near).is_same(all(on_another_host)));
  EXPECT_FALSE(all(near).is_same(all(user)));
  EXPECT_FALSE(all(with_key(1)).is_same(all(with_key(2))));
}

}  // namespace
}  // namespace tc::trust
