// SPDX-License-Identifier: Apache-2.0
#include "trust/keyring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>

#include "base/file.h"
#include "trust/private_file.h"
#include "trust/testing/keys.h"

namespace tc::trust {
namespace {

using ::testing::HasSubstr;
using testing::public_key;

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
  write("# mine\n" + line("ana", 1).substr(0, line("ana", 1).size() - 1));  // without its line feed
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

}  // namespace
}  // namespace tc::trust
