// SPDX-License-Identifier: Apache-2.0
#include "trust/key_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "base/file.h"
#include "trust/testing/keys.h"

namespace tc::trust {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::key_pair;
using ::testing::Not;

class KeyFile : public ::testing::Test {
 protected:
  KeyFile() { ::setenv("THREECHAINS_HOME", home_.c_str(), 1); }
  ~KeyFile() override { ::unsetenv("THREECHAINS_HOME"); }

  static mode_t mode_of(const std::filesystem::path& file) {
    struct stat info{};
    return ::stat(file.c_str(), &info) == 0 ? info.st_mode & 0777 : 0;
  }
  void write(std::string_view text) const {
    ASSERT_TRUE(write_file_atomically(file_, as_bytes(text)));
    ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
  }

  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
  std::filesystem::path home_ = directory_.file("home");
  std::filesystem::path file_ = directory_.file("key");
};

TEST_F(KeyFile, what_was_written_is_read_back) {
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  const auto key = read_key_file(file_);
  ASSERT_TRUE(key) << key.error().message;
  EXPECT_EQ(key->public_key(), key_pair(1).public_key());
  const auto text = read_file(file_, 1000).value();
  EXPECT_EQ(as_text(text), "threechains-private-key 1 AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE\n");
}

TEST_F(KeyFile, it_and_its_folder_are_the_owners_alone) {
  const auto old = ::umask(0);
  const auto path = key_path("node").value();
  ASSERT_TRUE(write_key_file(path, key_pair(1)));
  ::umask(old);
  EXPECT_EQ(path, home_ / "keys" / "node");
  EXPECT_EQ(mode_of(path), 0600u);
  EXPECT_EQ(mode_of(home_), 0700u);
  EXPECT_EQ(mode_of(home_ / "keys"), 0700u);
}

TEST_F(KeyFile, one_that_is_there_is_not_replaced) {
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  EXPECT_EQ(write_key_file(file_, key_pair(2)).error().code, TC_ERR_BUSY);
  EXPECT_EQ(read_key_file(file_)->public_key(), key_pair(1).public_key());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_.path()), {}), 1) << "something was left there";
}

TEST_F(KeyFile, one_that_others_may_use_is_refused_with_the_command_that_helps) {
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0610, 0666}) {
    ASSERT_EQ(::chmod(file_.c_str(), mode), 0);
    const auto key = read_key_file(file_);
    ASSERT_FALSE(key) << mode;
    EXPECT_EQ(key.error().code, TC_ERR_DENIED);
    EXPECT_THAT(key.error().message, HasSubstr("`chmod 600 " + file_.string() + "`"));
  }
  ASSERT_EQ(::chmod(file_.c_str(), 0400), 0);
  EXPECT_TRUE(read_key_file(file_));
}

TEST_F(KeyFile, one_of_another_user_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  ASSERT_EQ(::chown(file_.c_str(), 12345, static_cast<gid_t>(-1)), 0);
  const auto key = read_key_file(file_);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, TC_ERR_DENIED);
  EXPECT_THAT(key.error().message, HasSubstr("belongs to user 12345"));
}

TEST_F(KeyFile, a_pipe_does_not_block) {
  ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
  EXPECT_EQ(read_key_file(file_).error().code, TC_ERR_INVALID);
}

TEST_F(KeyFile, every_part_of_a_key_alone_and_every_wrong_character_is_refused) {
  ASSERT_TRUE(write_key_file(file_, key_pair(1)));
  const auto bytes = read_file(file_, 1000).value();
  const std::string whole(as_text(bytes));
  for (size_t size = 0; size < whole.size(); ++size)
    EXPECT_EQ(parse_private_key(whole.substr(0, size), file_).error().code, TC_ERR_MALFORMED) << size;
  for (size_t at = 0; at < whole.size(); ++at) {
    auto wrong = whole;
    wrong[at] = '*';
    EXPECT_EQ(parse_private_key(wrong, file_).error().code, TC_ERR_MALFORMED) << at;
  }
}

TEST_F(KeyFile, a_message_does_not_show_what_may_be_a_key) {
  const std::string text = "threechains-private-key 1 secretsecretsecretsecret\n";
  write(text + text + text);
  const auto key = read_key_file(file_);
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, TC_ERR_MALFORMED);
  EXPECT_THAT(key.error().message, HasSubstr("a key is one line of 70 bytes, and this is more"));
  EXPECT_THAT(key.error().message, Not(HasSubstr("secret")));
}

TEST_F(KeyFile, keys_are_found_by_name_and_by_path) {
  ASSERT_TRUE(write_key_file(key_path("node").value(), key_pair(1)));
  ASSERT_TRUE(write_key_file(file_, key_pair(2)));
  EXPECT_EQ(find_key("node")->public_key(), key_pair(1).public_key());
  EXPECT_EQ(find_key(file_.string())->public_key(), key_pair(2).public_key());
  const auto none = find_key("other");
  EXPECT_EQ(none.error().code, TC_ERR_NOT_FOUND);
  EXPECT_THAT(none.error().message, HasSubstr("`ifunc key new other`"));
  EXPECT_EQ(find_key("..").error().code, TC_ERR_INVALID);
}

TEST_F(KeyFile, keys_are_listed_by_name) {
  EXPECT_TRUE(list_keys()->empty());
  for (const auto* const name : {"node", "ana"}) ASSERT_TRUE(write_key_file(key_path(name).value(), key_pair(1)));
  EXPECT_THAT(list_keys().value(), ElementsAre("ana", "node"));
}

TEST_F(KeyFile, the_home_is_what_the_first_variable_says) {
  ::setenv("XDG_CONFIG_HOME", "/config", 1);
  EXPECT_EQ(home().value(), home_);
  ::unsetenv("THREECHAINS_HOME");
  EXPECT_EQ(home().value(), "/config/threechains");
  ::setenv("XDG_CONFIG_HOME", "", 1);
  const std::string user = std::getenv("HOME") != nullptr ? std::getenv("HOME") : "";
  ::setenv("HOME", "/user", 1);
  EXPECT_EQ(home().value(), "/user/.config/threechains");
  ::unsetenv("HOME");
  EXPECT_EQ(home().error().code, TC_ERR_NOT_FOUND);
  ::setenv("HOME", user.c_str(), 1);
  ::unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace tc::trust
