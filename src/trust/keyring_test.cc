// SPDX-License-Identifier: Apache-2.0
//
// The keyring, its lines, and the two files that a node keeps beside it.
#include "trust/keyring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>

#include "base/file.h"
#include "trust/grant.h"
#include "trust/known_nodes.h"
#include "trust/last_uses.h"
#include "trust/private_file.h"
#include "trust/testing/keys.h"

namespace tc::trust {
namespace {

using ::testing::HasSubstr;
using testing::public_key;

// ---- A line

Grant grant_of(std::string_view fields) {
  return parse_grant(fmt::format("ana {} {}", public_key(1).text(), fields)).value();
}

std::string error_of_line(std::string_view fields) {
  const auto grant = parse_grant(fmt::format("ana {} {}", public_key(1).text(), fields));
  return grant ? "" : grant.error().message;
}

TEST(Grant, a_line_without_fields_lets_signed_code_run_and_forbids_nothing_more) {
  const auto grant = grant_of("");
  EXPECT_EQ(grant.name, "ana");
  EXPECT_EQ(grant.key, public_key(1));
  EXPECT_EQ(grant.run, Run::signed_code);
  EXPECT_EQ(grant.where, Where::process);
  EXPECT_TRUE(grant.read.is_all() && grant.write.is_all() && grant.libraries.is_all() && grant.exports.is_all());
  EXPECT_TRUE(grant.hosts.empty());
  EXPECT_FALSE(grant.code_budget || grant.rate || grant.until || grant.revoked);
}

TEST(Grant, every_field_is_read) {
  const auto grant = grant_of(
      "run=any in=cell read=table*,log write=log libs=none exports=f hosts=10.0.0.0/8,::1 at=10.0.0.1:7001 code=2M "
      "rate=100 "
      "until=2027-01-31 revoked=2026-12-24T18:30:05Z");
  EXPECT_EQ(grant.run, Run::any);
  EXPECT_EQ(grant.where, Where::cell);
  EXPECT_TRUE(grant.read.contains("table7") && grant.read.contains("log"));
  EXPECT_FALSE(grant.read.contains("logs") || grant.read.contains("tabl"));
  EXPECT_TRUE(grant.write.contains("log"));
  EXPECT_FALSE(grant.write.contains("table"));
  EXPECT_FALSE(grant.libraries.contains("libm.so.6") || grant.libraries.contains("none"));
  EXPECT_TRUE(grant.exports.contains("f"));
  ASSERT_EQ(grant.hosts.size(), 2u);
  EXPECT_TRUE(grant.hosts[0].contains("10.1.2.3"));
  EXPECT_EQ(grant.code_budget, 2u << 20);
  EXPECT_EQ(grant.rate, 100u);
  EXPECT_EQ(to_text(*grant.until), "2027-01-31T00:00:00Z");
  EXPECT_EQ(to_text(*grant.revoked), "2026-12-24T18:30:05Z");
}

TEST(Grant, what_is_written_is_read_back) {
  for (const auto* const fields :
       {"", "run=none", "run=any in=cell", "read=a", "read=a write=*", "read=a,b* write=b*", "write=none", "write=a",
        "read=none", "libs=x exports=none hosts=10.0.0.0/8 at=127.0.0.1:1,[::1]:2 code=4096 rate=7",
        "until=2027-01-31T00:00:00Z revoked=2026-01-01T00:00:01Z"})
    EXPECT_EQ(fields_of(grant_of(fields)), fields);
}

TEST(Grant, fields_that_are_given_replace_those_of_the_same_name_alone) {
  const auto with = [](std::string_view before, std::string_view given) {
    return fields_of(with_fields(grant_of(before), given).value());
  };
  EXPECT_EQ(with("", "run=any"), "run=any");
  EXPECT_EQ(with("run=any rate=7", "rate=9"), "run=any rate=9");
  EXPECT_EQ(with("run=any rate=7", "run=signed"), "rate=7");
  EXPECT_EQ(with("rate=7 until=2027-01-31", ""), "rate=7 until=2027-01-31T00:00:00Z");
  EXPECT_EQ(with("read=a write=b", "read=c"), "read=c write=b");
  EXPECT_EQ(with("", "read=c"), "read=c") << "which may write nothing, as in a new line";
  EXPECT_EQ(with_fields(grant_of("run=any"), "walk=any").error().code, TC_ERR_INVALID);
}

TEST(Grant, a_line_that_says_what_may_be_read_allows_no_writing) {
  EXPECT_FALSE(grant_of("read=table").write.contains("table"));
  EXPECT_TRUE(grant_of("write=table").read.contains("other"));
}

TEST(Grant, a_wrong_field_is_refused_by_its_name_and_with_its_value) {
  EXPECT_THAT(error_of_line("walk=any"), HasSubstr("there is no field 'walk': they are run, in, read"));
  EXPECT_THAT(error_of_line("run=all"), HasSubstr("field run: 'all' is none of signed, any, none"));
  EXPECT_THAT(error_of_line("in=jail"), HasSubstr("field in: 'jail'"));
  EXPECT_THAT(error_of_line("read=a,,b"), HasSubstr("field read: 'a,,b' has an empty name"));
  EXPECT_THAT(error_of_line("read="), HasSubstr("field read:"));
  EXPECT_THAT(error_of_line("libs=a*b"), HasSubstr("'a*b' has a '*' that is not its last character"));
  EXPECT_THAT(error_of_line("hosts=10.0.0.1/8"), HasSubstr("field hosts:"));
  for (const auto* const at :
       {"at=north", "at=:7001", "at=north:", "at=north:x1", "at=.:1", "at=north..:1", "at=[[a]]:1"})
    EXPECT_THAT(error_of_line(at), HasSubstr("field at:")) << at;
  EXPECT_THAT(error_of_line("code=0"), HasSubstr("field code: '0' is no whole number from 1"));
  EXPECT_THAT(error_of_line("code=18446744073709551615G"), HasSubstr("field code:"));
  EXPECT_THAT(error_of_line("rate=4294967296"), HasSubstr("field rate:"));
  EXPECT_THAT(error_of_line("rate=-1"), HasSubstr("field rate:"));
  EXPECT_THAT(error_of_line("until=tomorrow"), HasSubstr("field until: 'tomorrow' is no time"));
  EXPECT_THAT(error_of_line("run"), HasSubstr("'run' is no field"));
  EXPECT_THAT(error_of_line("run=any run=none"), HasSubstr("field run stands there twice"));
}

TEST(Grant, a_line_without_name_or_key_is_refused) {
  for (const auto& line :
       std::vector<std::string>{"", "ana", "ana ed25519:AAAA", ".ana " + public_key(1).text(), "a/b x"})
    EXPECT_FALSE(parse_grant(line)) << line;
}

TEST(Grant, more_names_than_fit_a_field_are_refused) {
  std::string names = "a";
  for (int i = 1; i < 64; ++i) names += ",a";
  EXPECT_EQ(error_of_line("read=" + names), "");
  EXPECT_THAT(error_of_line("read=" + names + ",a"), HasSubstr("65 names when at most 64"));
}

TEST(Time, dates_that_no_calendar_has_are_refused) {
  for (const auto* const text :
       {"2027-02-29", "2027-13-01", "2027-00-01", "2027-1-1", "2027-01-01T24:00:00Z", "2027-01-01T00:00:00",
        "2027-01-01 00:00:00Z", "-027-01-01", "2027-01-01T00:60:00Z", "2027-01-01T00:00:60Z", ""})
    EXPECT_FALSE(parse_time(text)) << text;
  EXPECT_EQ(to_text(parse_time("2028-02-29").value()), "2028-02-29T00:00:00Z");
  EXPECT_EQ(parse_time("1970-01-02T00:00:01Z")->time_since_epoch().count(), 86401);
}

// ---- The file

std::string line(std::string_view name, unsigned char key, std::string_view fields = "") {
  return fmt::format("{} {}{}{}\n", name, public_key(key).text(), fields.empty() ? "" : " ", fields);
}

Keyring parse(const std::string& text) { return Keyring::parse(text, "ring").value(); }

std::string error_of(const std::string& text) {
  const auto keyring = Keyring::parse(text, "ring");
  return keyring ? "" : keyring.error().message;
}

Grant grant(std::string_view name, unsigned char key) {
  Grant grant;
  grant.name = name;
  grant.key = public_key(key);
  return grant;
}

class KeyringFile : public ::testing::Test {
 protected:
  void write(std::string_view text, mode_t mode = 0644) const {
    ASSERT_TRUE(write_file_atomically(file_, as_bytes(text)));
    ASSERT_EQ(::chmod(file_.c_str(), mode), 0);
  }
  std::string text() const { return std::string(as_text(read_file(file_, 1 << 20).value())); }
  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
  std::filesystem::path file_ = directory_.file("keyring");
};

TEST(Keyring, finds_lines_by_key_and_by_name) {
  const auto keyring = parse("# people\n\n" + line("ana", 1, "run=any") + "  # bob is away\n" + line("bob", 2));
  ASSERT_EQ(keyring.grants().size(), 2u);
  EXPECT_EQ(keyring.find(public_key(1))->name, "ana");
  EXPECT_EQ(keyring.find(public_key(1))->line, 3u);
  EXPECT_EQ(keyring.find("bob")->line, 5u);
  EXPECT_EQ(keyring.find(public_key(3)), nullptr);
  EXPECT_EQ(keyring.find("eve"), nullptr);
  EXPECT_EQ(keyring.where(), "ring");
}

TEST(Keyring, an_error_names_file_and_line) {
  EXPECT_THAT(error_of(line("ana", 1) + line("bob", 2, "run=never")), HasSubstr("ring, line 2: field run: 'never'"));
  EXPECT_THAT(error_of("\n" + line("ana", 1) + line("ana", 2)),
              HasSubstr("ring, line 3: the name 'ana' stands in line 2 already"));
  EXPECT_THAT(error_of(line("ana", 1) + line("bob", 1)), HasSubstr("stands in line 1 already"));
}

// Behind each field, what was cut off is still a keyring, whose last key may do more.
TEST(Keyring, that_was_cut_anywhere_is_refused) {
  const auto whole = line("ana", 1) + line("bob", 2, "run=any read=table libs=none rate=1");
  for (auto size = line("ana", 1).size() + 1; size < whole.size(); ++size)
    EXPECT_NE(error_of(whole.substr(0, size)), "") << whole.substr(0, size);
  EXPECT_EQ(error_of(whole.substr(0, whole.size() - 1)),
            "ring, line 2: the last line does not end with a line feed, so a part of the file may be missing; if none "
            "is, say `echo >> ring`");
  EXPECT_EQ(error_of(whole), "");
}

TEST_F(KeyringFile, that_was_cut_is_not_changed) {
  write(line("ana", 1) + "bob " + public_key(2).text());
  EXPECT_THAT(add_to_keyring(file_, grant("eve", 3)).error().message, HasSubstr("line 2: the last line does not end"));
  EXPECT_EQ(text(), line("ana", 1) + "bob " + public_key(2).text());
}

TEST(Keyring, characters_that_could_act_in_a_terminal_are_refused) {
  for (const char letter : {'\r', '\0', '\x1b', '\x7f', '\xc3'})
    EXPECT_THAT(error_of("ana" + std::string(1, letter) + line("", 1)), HasSubstr("not printable ASCII"));
}

TEST(Keyring, lines_and_files_have_limits) {
  EXPECT_THAT(error_of(line("ana", 1, "read=" + std::string(Keyring::max_line_bytes, 'a'))),
              HasSubstr("when at most 4096 are allowed"));
  EXPECT_THAT(error_of("#" + std::string(Keyring::max_line_bytes, 'a')), HasSubstr("when at most 4096 are allowed"));
  EXPECT_THAT(error_of(std::string(Keyring::max_file_bytes + 1, '\n')), HasSubstr("when at most 1048576 are allowed"));
  EXPECT_EQ(error_of(std::string(Keyring::max_file_bytes, '\n')), "");
}

TEST_F(KeyringFile, that_is_not_there_is_empty) {
  const auto keyring = Keyring::load(file_);
  ASSERT_TRUE(keyring) << keyring.error().message;
  EXPECT_TRUE(keyring->grants().empty());
  EXPECT_EQ(keyring->where(), file_.string());
}

TEST_F(KeyringFile, that_others_may_write_is_refused_with_the_command_that_helps) {
  for (const mode_t mode : {0664, 0646}) {
    write(line("ana", 1), mode);
    const auto keyring = Keyring::load(file_);
    ASSERT_FALSE(keyring);
    EXPECT_EQ(keyring.error().code, TC_ERR_DENIED);
    EXPECT_THAT(keyring.error().message, HasSubstr("`chmod go-w " + file_.string() + "`"));
  }
  write(line("ana", 1), 0644);
  EXPECT_TRUE(Keyring::load(file_));
}

TEST_F(KeyringFile, that_is_a_folder_is_refused) {
  std::filesystem::create_directory(file_);
  EXPECT_FALSE(Keyring::load(file_));
}

TEST_F(KeyringFile, lines_are_added_behind_what_is_there) {
  write("# mine\n" + line("ana", 1));
  ASSERT_TRUE(add_to_keyring(file_, grant("bob", 2)));
  EXPECT_EQ(text(), "# mine\n" + line("ana", 1) + line("bob", 2));
}

TEST_F(KeyringFile, a_new_one_is_its_owners_alone) {
  ASSERT_TRUE(add_to_keyring(file_, grant("ana", 1)));
  struct stat info{};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(KeyringFile, a_name_or_key_that_is_there_is_not_added_again) {
  ASSERT_TRUE(add_to_keyring(file_, grant("ana", 1)));
  EXPECT_EQ(add_to_keyring(file_, grant("ana", 2)).error().code, TC_ERR_INVALID);
  EXPECT_EQ(add_to_keyring(file_, grant("bob", 1)).error().code, TC_ERR_INVALID);
  EXPECT_EQ(text(), line("ana", 1));
}

TEST_F(KeyringFile, a_line_that_could_not_be_read_again_is_not_added) {
  ASSERT_TRUE(add_to_keyring(file_, grant("ana", 1)));
  for (const auto* name : {"", "two words", "two\nlines"})
    EXPECT_FALSE(add_to_keyring(file_, grant(name, 2))) << "'" << name << "'";
  EXPECT_EQ(text(), line("ana", 1));
}

TEST_F(KeyringFile, a_revoked_line_stays_and_says_since_when) {
  write("# mine\n" + line("ana", 1, "run=any") + line("bob", 2));
  ASSERT_TRUE(revoke_in_keyring(file_, "ana", parse_time("2026-05-04T03:02:01Z").value()));
  EXPECT_EQ(text(), "# mine\n" + line("ana", 1, "run=any revoked=2026-05-04T03:02:01Z") + line("bob", 2));
  ASSERT_TRUE(revoke_in_keyring(file_, public_key(2).text(), parse_time("2026-05-05").value()));
  EXPECT_TRUE(Keyring::load(file_)->find("bob")->revoked);
  const auto again = revoke_in_keyring(file_, "ana", parse_time("2026-05-06").value());
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("was revoked at 2026-05-04T03:02:01Z already"));
  EXPECT_EQ(revoke_in_keyring(file_, "eve", {}).error().code, TC_ERR_INVALID);
}

TEST_F(KeyringFile, adding_what_is_there_names_the_option_that_changes_it) {
  write("\n" + line("ana", 1));
  EXPECT_THAT(add_to_keyring(file_, grant("ana", 2)).error().message,
              HasSubstr("the name 'ana' stands in line 2 already; --update"));
  EXPECT_THAT(add_to_keyring(file_, grant("bob", 1)).error().message,
              HasSubstr("the key, as 'ana', stands in line 2 already; --update"));
}

TEST_F(KeyringFile, an_update_changes_the_fields_that_are_given_and_nothing_else) {
  write("# mine\n" + line("ana", 1, "run=any read=a rate=7") + "# yours\n" + line("bob", 2));
  const auto updated = update_in_keyring(file_, "ana", public_key(1), "rate=9 libs=none");
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_EQ(fields_of(updated->before), "run=any read=a rate=7");
  EXPECT_EQ(text(), "# mine\n" + line("ana", 1, "run=any read=a libs=none rate=9") + "# yours\n" + line("bob", 2));
}

TEST_F(KeyringFile, an_update_gives_a_line_another_key_or_another_name) {
  write(line("ana", 1, "rate=7") + line("bob", 2));
  ASSERT_TRUE(update_in_keyring(file_, "ana", public_key(3), ""));
  ASSERT_TRUE(update_in_keyring(file_, "anna", public_key(3), ""));
  EXPECT_EQ(text(), line("anna", 3, "rate=7") + line("bob", 2));
}

TEST_F(KeyringFile, an_update_that_cannot_be_changes_nothing) {
  const auto lines = line("ana", 1) + line("bob", 2) + line("eve", 3, "revoked=2026-01-01T00:00:00Z");
  write(lines);
  const auto why_not = [&](std::string_view name, unsigned char key, std::string_view fields) {
    const auto updated = update_in_keyring(file_, name, public_key(key), fields);
    return updated ? "" : updated.error().message;
  };
  EXPECT_THAT(why_not("zoe", 9, "rate=7"), HasSubstr("neither the name 'zoe' nor the key"));
  EXPECT_THAT(why_not("ana", 2, "rate=7"), HasSubstr("'ana' stands in line 1, but the key"));
  EXPECT_THAT(why_not("eve", 3, "run=any"), HasSubstr("line 3 (eve): the key was revoked"));
  EXPECT_THAT(why_not("eve", 4, ""), HasSubstr("line 3 (eve): the key was revoked"));
  EXPECT_THAT(why_not("ana", 1, "rate=fast"), HasSubstr("field rate: 'fast'"));
  EXPECT_THAT(why_not("a/b", 1, ""), HasSubstr("'a/b' is no name"));
  EXPECT_EQ(text(), lines);
}

TEST_F(KeyringFile, a_line_that_is_taken_out_leaves_the_others_and_the_comments) {
  write("# mine\n" + line("ana", 1, "run=any") + "# yours\n" + line("bob", 2) + line("eve", 3));
  EXPECT_EQ(to_line(remove_from_keyring(file_, "ana").value()) + "\n", line("ana", 1, "run=any"));
  EXPECT_EQ(remove_from_keyring(file_, public_key(3).text())->name, "eve");
  EXPECT_EQ(text(), "# mine\n# yours\n" + line("bob", 2));
}

TEST_F(KeyringFile, a_name_that_is_not_there_is_told_with_those_that_are) {
  write(line("ana", 1) + line("bob", 2));
  const auto removed = remove_from_keyring(file_, "eve");
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, TC_ERR_INVALID);
  EXPECT_EQ(removed.error().message, "'eve' is no name and no key in " + file_.string() + ", which has: ana, bob");
  std::string many;
  for (unsigned char i = 1; i < 26; ++i) many += line(fmt::format("name{}", i), i);
  write(many);
  EXPECT_THAT(remove_from_keyring(file_, "eve").error().message, HasSubstr("name19, name20 and 5 more"));
  write("");
  EXPECT_THAT(remove_from_keyring(file_, "eve").error().message, HasSubstr("which is empty"));
}

TEST(KeyringChange, names_what_differs_and_the_keys_that_lose_what_they_had) {
  const auto before = parse(line("ana", 1) + line("bob", 2) + line("eve", 3) + line("old", 4) + line("same", 5));
  const auto after = parse(line("same", 5) + line("ana", 1, "rate=7") + line("eve", 3, "revoked=2026-01-01") +
                           line("old", 6) + line("zoe", 7) + line("mal", 8, "revoked=2026-01-01"));
  const auto change = compare(before, after);
  EXPECT_EQ(to_text(change, 6), "6 keys; new: zoe; gone: bob; changed: ana, old; revoked: eve, mal");
  EXPECT_THAT(change.lost, ::testing::UnorderedElementsAre(public_key(2), public_key(3), public_key(4), public_key(8)));
}

TEST(KeyringChange, says_that_nothing_changed) {
  const auto before = parse(line("ana", 1, "revoked=2026-01-01") + line("bob", 2, "run=any rate=7"));
  const auto after =
      parse("# another order\n" + line("bob", 2, "rate=7 run=any") + line("ana", 1, "revoked=2026-01-01"));
  EXPECT_EQ(to_text(compare(before, after), 2), "2 keys; nothing changed");
  EXPECT_TRUE(compare(before, after).lost.empty());
  EXPECT_EQ(to_text(compare({}, {}), 1), "1 key; nothing changed");
}

TEST_F(KeyringFile, an_edit_keeps_who_may_read_it_and_the_link_that_names_it) {
  write(line("ana", 1), 0644);
  const std::filesystem::path name = directory_.file("link");
  std::filesystem::create_symlink(file_, name);
  ASSERT_TRUE(add_to_keyring(name, grant("bob", 2)));
  EXPECT_TRUE(std::filesystem::is_symlink(name));
  EXPECT_EQ(text(), line("ana", 1) + line("bob", 2));
  struct stat info{};
  ASSERT_EQ(::stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST_F(KeyringFile, edits_wait_for_another_and_then_give_up) {
  write(line("ana", 1));
  const auto lock = FileLock::of(file_).value();
  auto revoked = std::async(std::launch::async, [&] { return revoke_in_keyring(file_, "ana", {}); });
  const auto added = add_to_keyring(file_, grant("bob", 2));
  const auto edited = revoked.get();
  ASSERT_FALSE(added || edited);
  EXPECT_EQ(added.error().code, TC_ERR_BUSY);
  EXPECT_EQ(edited.error().code, TC_ERR_BUSY);
  EXPECT_EQ(text(), line("ana", 1));
}

// ---- Known nodes

class KnownNodesFile : public ::testing::Test {
 protected:
  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
  KnownNodes nodes_{directory_.file("known-nodes")};
};

TEST_F(KnownNodesFile, a_remembered_key_is_found_at_its_address_alone) {
  EXPECT_EQ(nodes_.find("10.0.0.7:7001").value(), std::nullopt);
  ASSERT_TRUE(nodes_.remember("10.0.0.7:7001", public_key(1)));
  ASSERT_TRUE(nodes_.remember("[::1]:7001", public_key(2)));
  EXPECT_EQ(nodes_.find("10.0.0.7:7001").value(), public_key(1));
  EXPECT_EQ(nodes_.find("[::1]:7001").value(), public_key(2));
  EXPECT_EQ(nodes_.find("10.0.0.7:700").value(), std::nullopt);
}

TEST_F(KnownNodesFile, another_key_does_not_replace_the_first) {
  ASSERT_TRUE(nodes_.remember("a:1", public_key(1)));
  EXPECT_TRUE(nodes_.remember("a:1", public_key(1)));
  EXPECT_EQ(nodes_.remember("a:1", public_key(2)).error().code, TC_ERR_BUSY);
  EXPECT_EQ(nodes_.find("a:1").value(), public_key(1));
}

TEST_F(KnownNodesFile, a_forgotten_address_may_have_another_key) {
  ASSERT_TRUE(nodes_.remember("a:1", public_key(1)));
  ASSERT_TRUE(nodes_.remember("b:1", public_key(1)));
  EXPECT_EQ(nodes_.forget("c:1"), false);
  EXPECT_EQ(nodes_.forget("a:1"), true);
  EXPECT_TRUE(nodes_.remember("a:1", public_key(2)));
  EXPECT_EQ(nodes_.find("b:1").value(), public_key(1));
}

TEST_F(KnownNodesFile, an_address_that_would_be_another_line_is_refused) {
  for (const auto& address : {std::string(), std::string("a b"), std::string("a\nb"), std::string(301, 'a')})
    EXPECT_EQ(nodes_.remember(address, public_key(1)).error().code, TC_ERR_INVALID) << address;
}

TEST(CanonicalAddress, is_one_for_all_spellings_and_asks_no_name_server) {
  for (const auto* const address :
       {"127.0.0.1:7001", "localhost:7001", "LOCALHOST:7001", "localhost.:7001", "127.0.1:7001", "127.1:7001",
        "127.000.000.001:7001", "[::ffff:127.0.0.1]:7001", "[::FFFF:7f00:1]:7001", "2130706433:7001"})
    EXPECT_EQ(canonical_address(address), "127.0.0.1:7001") << address;
  EXPECT_EQ(canonical_address("[2001:DB8:0:0::1]:7001"), "[2001:db8::1]:7001");
  EXPECT_EQ(canonical_address("North.Example.:7001"), "north.example:7001");
  for (const auto* const other : {"n1", "", "unix:/run/a:b", "a:1", ":7001", "[]:1"})
    EXPECT_EQ(canonical_address(other), other);
}

TEST_F(KnownNodesFile, knows_an_address_in_all_its_spellings) {
  ASSERT_TRUE(write_file_atomically(nodes_.file(), as_bytes("localhost:1 " + public_key(1).text() + "\n")));
  EXPECT_EQ(nodes_.find("127.1:1").value(), public_key(1)) << "also one that was written down as it was";
  EXPECT_EQ(nodes_.remember("127.0.0.1:1", public_key(2)).error().code, TC_ERR_BUSY);
  EXPECT_EQ(nodes_.forget("[::ffff:127.0.0.1]:1").value(), true);
  EXPECT_EQ(nodes_.find("localhost:1").value(), std::nullopt);
}

TEST_F(KnownNodesFile, a_line_that_is_none_is_named) {
  ASSERT_TRUE(write_file_atomically(nodes_.file(), as_bytes("a:1 " + public_key(1).text() + "\nb:1\n")));
  const auto found = nodes_.find("a:1");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("known-nodes, line 2: "));
}

TEST_F(KnownNodesFile, that_others_may_write_is_refused) {
  ASSERT_TRUE(nodes_.remember("a:1", public_key(1)));
  ASSERT_EQ(::chmod(nodes_.file().c_str(), 0622), 0);
  EXPECT_EQ(nodes_.find("a:1").error().code, TC_ERR_DENIED);
}

TEST_F(KnownNodesFile, edits_wait_for_another_and_then_give_up) {
  ASSERT_TRUE(nodes_.remember("a:1", public_key(1)));
  const auto lock = FileLock::of(nodes_.file()).value();
  auto remembered = std::async(std::launch::async, [&] { return nodes_.remember("b:1", public_key(2)); });
  const auto forgotten = nodes_.forget("a:1");
  const auto added = remembered.get();
  ASSERT_FALSE(forgotten || added);
  EXPECT_EQ(forgotten.error().code, TC_ERR_BUSY);
  EXPECT_EQ(added.error().code, TC_ERR_BUSY);
  EXPECT_EQ(nodes_.find("a:1").value(), public_key(1));
}

// ---- Last uses

Time at(std::string_view text) { return parse_time(text).value(); }

class LastUsesFile : public ::testing::Test {
 protected:
  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
  LastUses uses_{directory_.path() / "last-uses"};
};

TEST_F(LastUsesFile, that_is_not_there_has_none) { EXPECT_TRUE(uses_.read()->empty()); }

TEST_F(LastUsesFile, keeps_the_later_time_of_each_key_whoever_writes_it) {
  ASSERT_TRUE(uses_.record({{public_key(1), at("2026-01-02")}, {public_key(2), at("2026-01-02")}}));
  ASSERT_TRUE(uses_.record({{public_key(1), at("2026-01-01")}, {public_key(2), at("2026-01-03T00:00:07Z")}}));
  const UseTimes expected{{public_key(1), at("2026-01-02")}, {public_key(2), at("2026-01-03T00:00:07Z")}};
  EXPECT_EQ(uses_.read().value(), expected);
}

TEST_F(LastUsesFile, is_its_owners_alone) {
  ASSERT_TRUE(uses_.record({{public_key(1), at("2026-01-02")}}));
  struct stat info{};
  ASSERT_EQ(::stat(uses_.file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(LastUsesFile, that_is_malformed_is_told_by_its_line_and_begun_anew) {
  ASSERT_TRUE(write_file_atomically(uses_.file(), as_bytes(public_key(1).text() + " 2026-01-02\nnonsense\n")));
  ASSERT_FALSE(uses_.read());
  EXPECT_THAT(uses_.read().error().message, HasSubstr("last-uses, line 2: "));
  ASSERT_TRUE(uses_.record({{public_key(2), at("2026-01-02")}}));
  EXPECT_EQ(uses_.read()->size(), 1u);
}

TEST_F(LastUsesFile, loses_its_oldest_lines_when_there_are_too_many) {
  UseTimes many;
  for (unsigned i = 0; i < 10'010; ++i) {
    PublicKey key = public_key(1);
    key.bytes[0] = static_cast<std::byte>(i);
    key.bytes[1] = static_cast<std::byte>(i >> 8);
    many.emplace(key, at("2026-01-02") + std::chrono::seconds(i));
  }
  ASSERT_TRUE(uses_.record(many));
  const auto kept = uses_.read();
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->size(), 10'000u);
  for (const auto& [key, time] : *kept) ASSERT_GE(time, at("2026-01-02") + std::chrono::seconds(10));
}

}  // namespace
}  // namespace tc::trust
