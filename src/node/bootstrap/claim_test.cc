// SPDX-License-Identifier: Apache-2.0
//
// Which file in a rendezvous directory is believed, which is replaced, and which is in the way.
#include "node/bootstrap/claim.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "base/file.h"

namespace tc::node::bootstrap {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using State = Sight::State;
namespace fs = std::filesystem;

class ClaimTest : public testing::Test {
 protected:
  static Record record(uint32_t id, const std::string& address = "new:1") {
    return {.id = id, .count = 4, .host = "north", .address = address};
  }
  fs::path file(uint32_t id) const { return claim_path(path_, id); }
  void write(uint32_t id, const std::string& text) const {
    std::ofstream(file(id)) << text;
    ::chmod(file(id).c_str(), 0600);
  }
  // A file as a node that has ended leaves it.
  void leave_over(uint32_t id) const { write(id, encode(record(id, "old:1"))); }
  std::string content(uint32_t id) const {
    std::ifstream in(file(id));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Byte 0 is locked by the living node, byte 1 by who replaces what is left over.
  Fd lock(uint32_t id, off_t byte) const {
    Fd held(::open(file(id).c_str(), O_RDWR | O_CLOEXEC));
    struct flock wish{};
    wish.l_type = F_WRLCK;
    wish.l_start = byte;
    wish.l_len = 1;
    EXPECT_EQ(::fcntl(held.get(), F_OFD_SETLK, &wish), 0);
    return held;
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }
  void expect_in_the_way(const std::string& why) const {
    const auto claim = Claim::take(path_, record(1));
    ASSERT_FALSE(claim) << why;
    EXPECT_EQ(claim.error().code, TC_ERR_DENIED);
    EXPECT_THAT(claim.error().message, HasSubstr(file(1).string() + " is in the way: " + why));
    EXPECT_EQ(files(), 1u) << "what was there, and no draft";
  }
  void expect_unusable(const std::string& why) const {
    const auto seen = look_at(file(1), 1);
    EXPECT_EQ(seen.state, State::unusable) << why;
    EXPECT_THAT(seen.flaw, StartsWith("its file " + why));
  }

  const TemporaryDirectory temporary_ = TemporaryDirectory::create().value();
  const fs::path path_ = temporary_.path();
};

// ---- Taking

TEST_F(ClaimTest, a_left_over_file_is_replaced_and_goes_with_its_new_owner) {
  leave_over(1);
  {
    const auto claim = Claim::take(path_, record(1));
    ASSERT_TRUE(claim) << claim.error().message;
    EXPECT_TRUE(claim->holds());
    EXPECT_EQ(content(1), encode(record(1)));
    EXPECT_EQ(files(), 1u);
  }
  EXPECT_EQ(files(), 0u);
}

TEST_F(ClaimTest, a_number_whose_file_another_replaces_is_taken) {
  leave_over(1);
  const auto other = lock(1, 1);
  const auto claim = Claim::take(path_, record(1));
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().code, TC_ERR_BUSY);
  EXPECT_EQ(claim.error().message, "a living node has " + file(1).string());
  EXPECT_EQ(content(1), encode(record(1, "old:1")));
  EXPECT_EQ(files(), 1u);
}

TEST_F(ClaimTest, a_number_whose_file_is_locked_is_taken) {
  leave_over(1);
  const auto other = lock(1, 0);
  const auto claim = Claim::take(path_, record(1));
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().code, TC_ERR_BUSY);
  EXPECT_EQ(content(1), encode(record(1, "old:1")));
}

TEST_F(ClaimTest, what_is_no_regular_file_is_in_the_way) {
  ASSERT_EQ(::mkfifo(file(1).c_str(), 0600), 0);
  expect_in_the_way("it is no regular file");
  fs::remove(file(1));
  fs::create_directory(file(1));
  expect_in_the_way("Is a directory");
  fs::remove(file(1));
  fs::create_symlink("/dev/null", file(1));
  expect_in_the_way("Too many levels of symbolic links");
}

TEST_F(ClaimTest, a_file_of_another_user_is_in_the_way) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  leave_over(1);
  ASSERT_EQ(::chown(file(1).c_str(), 12345, 12345), 0);
  expect_in_the_way("it belongs to user 12345 when ours belong to 0");
}

TEST_F(ClaimTest, a_directory_that_cannot_be_written_to_is_named) {
  const auto nowhere = path_ / "nowhere";
  const auto claim = Claim::take(nowhere, record(1));
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().code, TC_ERR_IO);
  EXPECT_THAT(claim.error().message, StartsWith("creating " + nowhere.string() + "/.draft-"));
  EXPECT_THAT(claim.error().message, HasSubstr("No such file or directory"));
}

// NFS may make a link and report that it exists, when the answer to the first try was lost. Here somebody else makes it, as
// soon as the draft can be seen.
TEST_F(ClaimTest, a_link_that_is_made_although_it_is_said_to_exist_is_ours) {
  std::atomic<bool> ends = false;
  std::atomic<int> made = 0;
  std::thread linker([&] {
    while (!ends) {
      std::error_code gone;
      for (const auto& entry : fs::directory_iterator(path_, gone))
        if (entry.path().filename().string().starts_with(".draft-"))
          if (::link(entry.path().c_str(), file(1).c_str()) == 0) ++made;
    }
  });
  for (int round = 0; round < 20'000 && made < 10 && !HasFailure(); ++round) {
    {
      const auto claim = Claim::take(path_, record(1));
      EXPECT_TRUE(claim) << claim.error().message;
    }
    EXPECT_EQ(files(), 0u) << "it goes with the claim";
  }
  ends = true;
  linker.join();
  if (made == 0) GTEST_SKIP() << "the draft was never seen in time";
}

// ---- Looking

TEST_F(ClaimTest, the_file_of_a_living_node_is_believed_until_it_ends) {
  EXPECT_EQ(look_at(file(1), 1).state, State::absent);
  {
    const auto claim = Claim::take(path_, record(1));
    ASSERT_TRUE(claim) << claim.error().message;
    const auto seen = look_at(file(1), 1);
    EXPECT_EQ(seen.state, State::alive) << seen.flaw;
    EXPECT_EQ(seen.record.address, "new:1");
    EXPECT_EQ(look_at(file(1), 2).flaw, "its file is that of node 1");
  }
  EXPECT_EQ(look_at(file(1), 1).state, State::absent);
}

TEST_F(ClaimTest, a_file_that_nobody_holds_is_left_over_also_while_it_is_replaced) {
  leave_over(1);
  const auto left_over = look_at(file(1), 1);
  EXPECT_EQ(left_over.state, State::left_over);
  EXPECT_EQ(left_over.flaw, "its file is left over from a process that has ended");
  const auto other = lock(1, 1);
  EXPECT_EQ(look_at(file(1), 1).state, State::left_over);
}

TEST_F(ClaimTest, a_file_that_its_group_or_others_could_have_written_is_not_believed) {
  leave_over(1);
  const auto node = lock(1, 0);
  for (const mode_t mode : {0620, 0602, 0666}) {
    ASSERT_EQ(::chmod(file(1).c_str(), mode), 0);
    expect_unusable(fmt::format("has mode {:04o}, so other users could have written it", mode));
  }
  for (const mode_t mode : {0600, 0644, 0755}) {
    ASSERT_EQ(::chmod(file(1).c_str(), mode), 0);
    EXPECT_EQ(look_at(file(1), 1).state, State::alive) << mode;
  }
}

TEST_F(ClaimTest, what_cannot_be_read_or_is_no_regular_file_is_not_believed) {
  fs::create_symlink("/dev/null", file(1));
  expect_unusable("cannot be read: ");
  fs::remove(file(1));
  fs::create_directory(file(1));
  expect_unusable("is no regular file");
}

TEST_F(ClaimTest, a_file_that_is_longer_than_a_record_is_not_believed_for_its_beginning) {
  auto text = encode(record(1));
  text.insert(text.find("1 of"), max_record_bytes - text.size(), '0');
  write(1, text);
  const auto node = lock(1, 0);
  EXPECT_EQ(look_at(file(1), 1).state, State::alive) << look_at(file(1), 1).flaw;
  write(1, text + "\n");
  expect_unusable("holds 1025 bytes that are not a node's record");
}

}  // namespace
}  // namespace tc::node::bootstrap
