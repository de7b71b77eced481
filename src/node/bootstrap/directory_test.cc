// SPDX-License-Identifier: Apache-2.0
//
// Nodes that meet in a directory.
#include "node/bootstrap/directory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "base/file.h"
#include "node/bootstrap/claim.h"

namespace tc::node::bootstrap {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// ---- Which file is believed, which is replaced, and which is in the way

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

TEST_F(ClaimTest, nobody_but_its_owner_may_read_or_write_the_file_of_a_number) {
  const auto claim = Claim::take(path_, record(1));
  ASSERT_TRUE(claim);
  EXPECT_EQ(fs::status(file(1)).permissions(), fs::perms(0600));
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

// ---- Nodes of this process that meet. Their locks exclude each other as those of processes do

struct Met {
  std::unique_ptr<Directory> directory;
  Result<Cluster> cluster;
};

// One that follows from the node's address, so that a test can tell whose it got.
trust::PublicKey key_of(const std::string& address) {
  trust::PublicKey key;
  std::ranges::copy(as_bytes(address), key.bytes.begin());
  return key;
}

class DirectoryTest : public testing::Test {
 protected:
  Met meet(const std::string& address, uint32_t nodes, std::optional<uint32_t> id = {}, uint32_t timeout_ms = 5000) {
    auto directory = std::make_unique<Directory>(Options{.directory = path_, .nodes = nodes, .timeout_ms = timeout_ms});
    auto cluster = directory->meet({address, key_of(address)}, id, Deadline::after_ms(timeout_ms));
    return {std::move(directory), std::move(cluster)};
  }
  std::future<Met> later(const std::string& address, uint32_t nodes, std::optional<uint32_t> id = {},
                         uint32_t timeout_ms = 5000) {
    return std::async(std::launch::async, [=, this] { return meet(address, nodes, id, timeout_ms); });
  }
  fs::path file(uint32_t id) const { return claim_path(path_, id); }
  void write(uint32_t id, const std::string& text) const { std::ofstream(file(id)) << text; }
  Record record(uint32_t id, uint32_t count) const {
    return {.id = id, .count = count, .host = host_name(), .address = fmt::format("old:{}", id)};
  }

  const TemporaryDirectory temporary_ = TemporaryDirectory::create().value();
  std::string path_ = temporary_.path();
};

TEST_F(DirectoryTest, nodes_without_numbers_get_different_ones_and_the_same_list) {
  constexpr uint32_t count = 16;
  std::vector<std::future<Met>> nodes;
  for (uint32_t i = 0; i < count; ++i) nodes.push_back(later(fmt::format("n:{}", i), count));
  std::set<uint32_t> ids;
  std::vector<Met> met;
  for (auto& node : nodes) met.push_back(node.get());
  for (uint32_t i = 0; i < count; ++i) {
    const auto& cluster = met[i].cluster;
    ASSERT_TRUE(cluster) << cluster.error().message;
    ids.insert(cluster->id);
    EXPECT_EQ(cluster->addresses[cluster->id], fmt::format("n:{}", i));
    EXPECT_EQ(cluster->addresses, met[0].cluster->addresses);
    ASSERT_EQ(cluster->keys.size(), count);
    for (uint32_t id = 0; id < count; ++id) EXPECT_EQ(cluster->keys[id], key_of(cluster->addresses[id]));
  }
  EXPECT_EQ(ids.size(), count);
}

TEST_F(DirectoryTest, a_node_keeps_the_number_that_it_was_given) {
  auto other = later("b:1", 2, 0);
  const auto node = meet("a:1", 2, 1);
  ASSERT_TRUE(node.cluster) << node.cluster.error().message;
  EXPECT_EQ(node.cluster->id, 1u);
  EXPECT_EQ(node.cluster->addresses, (std::vector<std::string>{"b:1", "a:1"}));
  EXPECT_TRUE(other.get().cluster);
}

TEST_F(DirectoryTest, who_does_not_come_is_named_with_the_deadline) {
  auto other = later("b:1", 4, 0, 300);
  const auto node = meet("a:1", 4, 2, 300);
  ASSERT_FALSE(node.cluster);
  EXPECT_EQ(node.cluster.error().code, TC_ERR_TIMEOUT);
  EXPECT_THAT(node.cluster.error().message, HasSubstr("nodes 1 and 3 of 4 did not appear in " + path_));
  EXPECT_THAT(node.cluster.error().message, HasSubstr("within 300 ms"));
}

TEST_F(DirectoryTest, a_number_that_a_living_node_has_is_not_given_again) {
  const auto first = meet("a:1", 1, 0);
  ASSERT_TRUE(first.cluster);
  const auto second = meet("b:1", 1, 0);
  ASSERT_FALSE(second.cluster);
  EXPECT_EQ(second.cluster.error().code, TC_ERR_BUSY);
  EXPECT_THAT(second.cluster.error().message, HasSubstr("a living node has " + file(0).string()));
  const auto third = meet("b:1", 1);
  ASSERT_FALSE(third.cluster);
  EXPECT_THAT(third.cluster.error().message, HasSubstr("living nodes have all 1 numbers"));
}

TEST_F(DirectoryTest, files_left_over_by_an_earlier_run_are_neither_believed_nor_in_the_way) {
  for (uint32_t id = 0; id < 3; ++id) write(id, encode(record(id, 3)));
  auto other = later("b:1", 3, 0, 300);
  const auto node = meet("a:1", 3, 1, 300);
  ASSERT_FALSE(node.cluster) << "node 2's address is old";
  EXPECT_THAT(node.cluster.error().message, HasSubstr("node 2 of 3 did not appear"));
  EXPECT_THAT(node.cluster.error().message, HasSubstr("left over from a process that has ended"));
}

// Who replaces it locks it for a moment.
TEST_F(DirectoryTest, a_left_over_file_is_not_believed_while_it_is_replaced) {
  ASSERT_EQ(::mkdir(path_.c_str(), 0700) == 0 || errno == EEXIST, true);
  std::atomic<bool> ends = false;
  std::atomic<int> believed = 0;
  std::thread reader([&] {
    while (!ends) {
      const auto seen = look_at(file(0), 0);
      if (seen.state == Sight::State::alive && seen.record.address == "old:0") ++believed;
    }
  });
  for (int i = 0; i < 300; ++i) {
    write(0, encode(record(0, 1)));
    auto own = record(0, 1);
    own.address = "new:0";
    EXPECT_TRUE(Claim::take(path_, own));  // and gives it up
  }
  ends = true;
  reader.join();
  EXPECT_EQ(believed, 0);
}

TEST_F(DirectoryTest, many_that_want_the_same_left_over_files_share_them_out) {
  constexpr uint32_t count = 8;
  for (uint32_t id = 0; id < count; ++id) write(id, encode(record(id, count)));
  std::vector<std::future<Met>> nodes;
  for (uint32_t i = 0; i < count; ++i) nodes.push_back(later(fmt::format("n:{}", i), count));
  std::vector<Met> met;
  for (auto& node : nodes) met.push_back(node.get());
  std::set<std::string> addresses;
  for (const auto& node : met) {
    ASSERT_TRUE(node.cluster) << node.cluster.error().message;
    addresses.insert(node.cluster->addresses.begin(), node.cluster->addresses.end());
  }
  EXPECT_EQ(addresses.size(), count);
}

TEST_F(DirectoryTest, junk_is_not_believed_even_when_somebody_holds_it) {
  const std::vector<std::string> junk{"",
                                      "\n",
                                      "threechains-node",
                                      std::string(100'000, 'x'),
                                      encode(record(0, 2)),
                                      "threechains-node 2 w 1 of 2 on h at a:1 key ed25519:x\n"};
  for (const auto& text : junk) {
    write(1, text);
    const Fd held(::open(file(1).c_str(), O_RDWR | O_CLOEXEC));
    struct flock lock{};
    lock.l_type = F_WRLCK;
    ASSERT_EQ(::fcntl(held.get(), F_OFD_SETLK, &lock), 0);
    const auto node = meet("a:1", 2, 0, 50);
    ASSERT_FALSE(node.cluster);
    EXPECT_THAT(node.cluster.error().message, HasSubstr("node 1 of 2 did not appear"));
    EXPECT_THAT(node.cluster.error().message, HasSubstr("(node 1: its file ")) << text.substr(0, 40);
  }
}

TEST_F(DirectoryTest, what_is_no_file_is_neither_read_nor_replaced) {
  ASSERT_EQ(::mkfifo(file(1).c_str(), 0600), 0);
  const auto reader = meet("a:1", 2, 0, 50);
  ASSERT_FALSE(reader.cluster);
  EXPECT_THAT(reader.cluster.error().message, HasSubstr("no regular file"));
  const auto taker = meet("a:1", 2, 1, 50);
  ASSERT_FALSE(taker.cluster);
  EXPECT_EQ(taker.cluster.error().code, TC_ERR_DENIED);
  fs::remove(file(1));
  fs::create_symlink("/etc/hostname", file(1));
  EXPECT_FALSE(meet("a:1", 2, 1, 50).cluster);
  EXPECT_TRUE(fs::is_symlink(file(1)));
}

TEST_F(DirectoryTest, a_directory_that_others_can_write_to_vouches_for_nobody) {
  for (const auto mode : {0770, 0702, 01777}) {
    ASSERT_EQ(::chmod(path_.c_str(), static_cast<mode_t>(mode)), 0);
    const auto node = meet("a:1", 1);
    ASSERT_FALSE(node.cluster) << mode;
    EXPECT_EQ(node.cluster.error().code, TC_ERR_DENIED);
    EXPECT_THAT(node.cluster.error().message, HasSubstr(fmt::format("{} has mode {:04o}", path_, mode)));
    EXPECT_THAT(node.cluster.error().message, HasSubstr("chmod 700"));
    EXPECT_TRUE(fs::is_empty(path_)) << "nothing of ours is published there";
  }
  ASSERT_EQ(::chmod(path_.c_str(), 0755), 0);
  EXPECT_TRUE(meet("a:1", 1).cluster) << "others may read it";
}

TEST_F(DirectoryTest, a_directory_of_another_user_vouches_for_nobody) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a directory of another user";
  ASSERT_EQ(::chown(path_.c_str(), 12345, 12345), 0);
  const auto node = meet("a:1", 1);
  ASSERT_FALSE(node.cluster);
  EXPECT_EQ(node.cluster.error().code, TC_ERR_DENIED);
  EXPECT_THAT(node.cluster.error().message, HasSubstr("belongs to user 12345"));
}

TEST_F(DirectoryTest, a_file_that_others_could_have_written_is_not_believed) {
  const auto claim = Claim::take(path_, record(1, 2));
  ASSERT_TRUE(claim) << claim.error().message;
  const auto refusal = [&] {
    const auto node = meet("a:1", 2, 0, 50);
    return node.cluster ? std::string() : node.cluster.error().message;
  };
  ASSERT_EQ(::chmod(file(1).c_str(), 0620), 0);
  EXPECT_THAT(refusal(), HasSubstr("(node 1: its file has mode 0620"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file to another user";
  ASSERT_EQ(::chmod(file(1).c_str(), 0600), 0);
  ASSERT_EQ(::chown(file(1).c_str(), 12345, 12345), 0);
  EXPECT_THAT(refusal(), HasSubstr("(node 1: its file belongs to user 12345"));
}

TEST_F(DirectoryTest, nodes_that_expect_different_numbers_of_nodes_say_so_at_once) {
  auto other = later("b:1", 3, 0, 1000);
  const auto node = meet("a:1", 2, 1, 5000);
  ASSERT_FALSE(node.cluster);
  EXPECT_EQ(node.cluster.error().code, TC_ERR_INVALID);
  EXPECT_THAT(node.cluster.error().message, HasSubstr("expects 3 nodes when this one expects 2"));
}

TEST_F(DirectoryTest, a_loopback_address_of_another_host_is_refused) {
  auto elsewhere = record(0, 2);
  elsewhere.host = "some-other-host";
  elsewhere.address = "127.0.0.1:7000";
  const auto claim = Claim::take(path_, elsewhere);
  ASSERT_TRUE(claim);
  const auto node = meet("10.0.0.1:1", 2, 1);
  ASSERT_FALSE(node.cluster);
  EXPECT_THAT(node.cluster.error().message, HasSubstr("0.0.0.0:0"));
}

TEST_F(DirectoryTest, a_node_that_leaves_at_once_was_seen_by_all) {
  constexpr uint32_t count = 8;
  for (int round = 0; round < 10; ++round) {
    std::vector<std::future<bool>> nodes;
    for (uint32_t i = 0; i < count; ++i)
      nodes.push_back(std::async(std::launch::async, [&, i] {
        return meet(fmt::format("n:{}", i), count, i).cluster.has_value();  // gone when this returns
      }));
    for (auto& node : nodes) EXPECT_TRUE(node.get());
    EXPECT_TRUE(fs::is_empty(path_));
  }
}

TEST_F(DirectoryTest, a_node_that_lost_its_file_says_so) {
  auto waiting = later("a:1", 2, 0, 5000);
  const auto end = Deadline::after_ms(5000);
  while (!fs::exists(file(0)) && !end.passed()) std::this_thread::yield();
  fs::remove(file(0));
  const auto node = waiting.get();
  ASSERT_FALSE(node.cluster);
  EXPECT_EQ(node.cluster.error().code, TC_ERR_UNSUPPORTED);
  EXPECT_THAT(node.cluster.error().message, HasSubstr("was replaced"));
}

TEST_F(DirectoryTest, is_made_when_its_parent_exists) {
  path_ += "/new";
  EXPECT_TRUE(meet("a:1", 1).cluster);
  path_ += "/no/parent";
  const auto node = meet("a:1", 1);
  ASSERT_FALSE(node.cluster);
  EXPECT_THAT(node.cluster.error().message, HasSubstr(path_));
  path_ = path_.substr(0, path_.size() - std::string_view("/new/no/parent").size());
}

}  // namespace
}  // namespace tc::node::bootstrap
