// SPDX-License-Identifier: Apache-2.0
#include "target/disk_cache.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/file.h"

namespace tc::target {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

Bytes bytes_of(std::string_view text) {
  const auto view = as_bytes(text);
  return Bytes(view.begin(), view.end());
}

// A directory of its own for each test, gone afterwards.
class DiskCacheTest : public testing::Test {
 protected:
  void TearDown() override {
    std::error_code error;
    fs::permissions(directory_, fs::perms::owner_all, error);  // some tests take them away; then it cannot be removed
  }

  std::unique_ptr<DiskCache> open(size_t limit = DiskCache::default_limit) {
    auto cache = DiskCache::open(directory_, limit);
    EXPECT_TRUE(cache) << cache.error().message;
    return cache ? std::move(*cache) : nullptr;
  }
  fs::path entry(std::string_view key) const { return directory_ / DiskCache::file_name(key); }
  size_t files() const {
    size_t count = 0;
    for ([[maybe_unused]] const auto& file : fs::directory_iterator(directory_)) ++count;
    return count;
  }
  // Makes an entry look as if it was used last `seconds` ago.
  void age(std::string_view key, int seconds) const {
    const auto then = fs::file_time_type::clock::now() - std::chrono::seconds(seconds);
    fs::last_write_time(entry(key), then);
  }

  const TemporaryDirectory temporary_ = TemporaryDirectory::create().value();
  const fs::path root_ = temporary_.path();
  fs::path directory_ = root_ / "cache";
};

TEST_F(DiskCacheTest, what_was_stored_is_found_again) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("object")));
  EXPECT_EQ(cache->find("key"), bytes_of("object"));
}

TEST_F(DiskCacheTest, what_was_not_stored_is_a_miss) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("object")));
  EXPECT_EQ(cache->find("other key"), std::nullopt);
}

TEST_F(DiskCacheTest, an_empty_payload_is_a_payload) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", {}));
  EXPECT_EQ(cache->find("key"), Bytes());
}

TEST_F(DiskCacheTest, entries_outlive_the_cache_object) {
  ASSERT_TRUE(open()->store("key", bytes_of("object")));
  EXPECT_EQ(open()->find("key"), bytes_of("object"));
}

TEST_F(DiskCacheTest, storing_again_replaces) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("old")));
  ASSERT_TRUE(cache->store("key", bytes_of("new")));
  EXPECT_EQ(cache->find("key"), bytes_of("new"));
  EXPECT_EQ(files(), 1u);
}

TEST_F(DiskCacheTest, a_removed_entry_is_a_miss) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("object")));
  cache->remove("key");
  EXPECT_EQ(cache->find("key"), std::nullopt);
  EXPECT_EQ(files(), 0u);
}

TEST_F(DiskCacheTest, a_new_directory_is_for_this_user_alone) {
  directory_ = root_ / "made" / "on" / "demand";
  open();
  EXPECT_EQ(fs::status(directory_).permissions(), fs::perms::owner_all);
}

TEST_F(DiskCacheTest, an_entry_with_any_byte_changed_is_a_miss_and_removed) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("object code")));
  const auto good = *read_file(entry("key"), 1000);
  for (size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= std::byte(1u << (i % 8));
    ASSERT_TRUE(write_file_atomically(entry("key"), bad));
    EXPECT_EQ(cache->find("key"), std::nullopt) << "byte " << i;
    EXPECT_FALSE(fs::exists(entry("key"))) << "byte " << i;
  }
  ASSERT_TRUE(write_file_atomically(entry("key"), good));
  EXPECT_EQ(cache->find("key"), bytes_of("object code"));
}

TEST_F(DiskCacheTest, an_entry_cut_short_anywhere_is_a_miss_and_removed) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("object code")));
  const auto good = *read_file(entry("key"), 1000);
  for (size_t size = 0; size < good.size(); ++size) {
    ASSERT_TRUE(write_file_atomically(entry("key"), ByteView(good).first(size)));
    EXPECT_EQ(cache->find("key"), std::nullopt) << size << " bytes";
    EXPECT_FALSE(fs::exists(entry("key"))) << size << " bytes";
  }
}

TEST_F(DiskCacheTest, an_entry_with_bytes_behind_it_is_a_miss) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("object code")));
  auto longer = *read_file(entry("key"), 1000);
  longer.push_back(std::byte{0});
  ASSERT_TRUE(write_file_atomically(entry("key"), longer));
  EXPECT_EQ(cache->find("key"), std::nullopt);
}

TEST_F(DiskCacheTest, an_entry_of_another_key_under_this_name_is_a_miss) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("other", bytes_of("other code")));
  fs::rename(entry("other"), entry("key"));
  EXPECT_EQ(cache->find("key"), std::nullopt);
}

TEST_F(DiskCacheTest, a_link_or_a_pipe_in_place_of_an_entry_is_a_miss_and_removed) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("object")));
  fs::rename(entry("key"), root_ / "elsewhere");
  fs::create_symlink(root_ / "elsewhere", entry("key"));
  EXPECT_EQ(cache->find("key"), std::nullopt);
  EXPECT_FALSE(fs::exists(fs::symlink_status(entry("key"))));
  EXPECT_TRUE(fs::exists(root_ / "elsewhere"));
  ASSERT_EQ(::mkfifo(entry("key").c_str(), 0600), 0);
  EXPECT_EQ(cache->find("key"), std::nullopt);
  EXPECT_EQ(files(), 0u);
}

TEST_F(DiskCacheTest, the_entries_used_longest_ago_make_room) {
  const auto cache = open(5000);
  const Bytes payload(1000);
  for (const auto* key : {"a", "b", "c", "d"}) ASSERT_TRUE(cache->store(key, payload));
  age("a", 40), age("b", 30), age("c", 20), age("d", 10);
  EXPECT_NE(cache->find("a"), std::nullopt);  // used just now
  ASSERT_TRUE(cache->store("e", payload));
  EXPECT_EQ(cache->find("b"), std::nullopt);
  EXPECT_NE(cache->find("a"), std::nullopt);
  EXPECT_NE(cache->find("d"), std::nullopt);
  EXPECT_NE(cache->find("e"), std::nullopt);
  EXPECT_LE(cache->bytes(), 5000u);
}

TEST_F(DiskCacheTest, the_limit_holds_however_much_is_stored) {
  const auto cache = open(20'000);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(cache->store(fmt::format("key {}", i), Bytes(1000)));
  size_t total = 0;
  for (const auto& file : fs::directory_iterator(directory_)) total += file.file_size();
  EXPECT_LE(total, 20'000u);
  EXPECT_GE(total, 10'000u);
}

TEST_F(DiskCacheTest, what_others_store_in_the_directory_counts_in_time) {
  const auto cache = open(100'000), others = open(100'000);
  for (int i = 0; i < 90; ++i) ASSERT_TRUE(others->store(fmt::format("theirs {}", i), Bytes(1000)));
  for (int i = 0; i < 70; ++i) ASSERT_TRUE(cache->store(fmt::format("ours {}", i), Bytes(1000)));
  size_t total = 0;
  for (const auto& file : fs::directory_iterator(directory_)) total += file.file_size();
  EXPECT_LE(total, 110'000u) << "neither stored more than the limit";
  EXPECT_NE(cache->find("ours 69"), std::nullopt);
}

TEST_F(DiskCacheTest, a_directory_over_a_smaller_limit_is_shrunk_when_opened) {
  {
    const auto cache = open();
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(cache->store(fmt::format("key {}", i), Bytes(1000)));
  }
  EXPECT_LE(open(5000)->bytes(), 5000u);
  EXPECT_LE(files(), 4u);
}

TEST_F(DiskCacheTest, a_payload_over_the_limit_is_refused_and_the_rest_stays) {
  const auto cache = open(2000);
  ASSERT_TRUE(cache->store("small", Bytes(100)));
  const auto stored = cache->store("large", Bytes(2000));
  ASSERT_FALSE(stored);
  EXPECT_EQ(stored.error().code, TC_ERR_TOO_LARGE);
  EXPECT_THAT(stored.error().message, HasSubstr("2080"));
  EXPECT_NE(cache->find("small"), std::nullopt);
}

TEST_F(DiskCacheTest, what_a_dead_writer_left_is_cleared_and_what_a_living_one_writes_is_not) {
  open();
  const auto left = directory_ / (DiskCache::file_name("key") + ".123.new");
  const auto fresh = directory_ / (DiskCache::file_name("other") + ".124.new");
  std::ofstream(left) << "half";
  std::ofstream(fresh) << "half";
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::hours(2));
  open();
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(fresh));
}

TEST_F(DiskCacheTest, files_of_others_in_the_directory_are_left_alone) {
  open();
  std::ofstream(directory_ / "README") << std::string(10'000, 'x');
  const auto cache = open(1000);
  EXPECT_TRUE(fs::exists(directory_ / "README"));
  EXPECT_EQ(cache->bytes(), 0u);
}

TEST_F(DiskCacheTest, a_directory_that_others_can_write_to_is_refused) {
  fs::create_directory(directory_);
  for (const auto mode : {fs::perms(0770), fs::perms(0707), fs::perms(01777)}) {
    fs::permissions(directory_, mode);
    const auto cache = DiskCache::open(directory_);
    ASSERT_FALSE(cache);
    EXPECT_EQ(cache.error().code, TC_ERR_DENIED);
    EXPECT_THAT(cache.error().message, HasSubstr(directory_.string()));
  }
}

TEST_F(DiskCacheTest, a_directory_that_others_can_read_is_taken) {
  fs::create_directory(directory_);
  fs::permissions(directory_, fs::perms(0755));
  EXPECT_TRUE(DiskCache::open(directory_));
}

TEST_F(DiskCacheTest, a_directory_of_another_user_is_refused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  fs::create_directory(directory_);
  ASSERT_EQ(::chown(directory_.c_str(), 12345, 0), 0);
  const auto cache = DiskCache::open(directory_);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, TC_ERR_DENIED);
  EXPECT_THAT(cache.error().message, HasSubstr("12345"));
}

TEST_F(DiskCacheTest, a_directory_that_cannot_be_made_is_an_error) {
  std::ofstream(root_ / "file") << "";
  const auto cache = DiskCache::open(root_ / "file" / "cache");
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, TC_ERR_IO);
  EXPECT_THAT(cache.error().message, HasSubstr("file/cache"));
  EXPECT_FALSE(DiskCache::open(root_ / "file"));
}

TEST_F(DiskCacheTest, an_unwritable_directory_is_an_error) {
  if (::geteuid() == 0) GTEST_SKIP() << "root can write anywhere";
  fs::create_directory(directory_);
  fs::permissions(directory_, fs::perms(0500));
  const auto cache = DiskCache::open(directory_);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, TC_ERR_IO);
}

TEST_F(DiskCacheTest, a_directory_that_is_renamed_away_does_not_lead_to_the_one_put_in_its_place) {
  const auto cache = open();
  ASSERT_TRUE(cache->store("key", bytes_of("object")));
  fs::rename(directory_, root_ / "moved");
  fs::create_directory(directory_);
  EXPECT_EQ(cache->find("key"), bytes_of("object"));
  ASSERT_TRUE(cache->store("other", bytes_of("object")));
  EXPECT_EQ(files(), 0u);
}

TEST_F(DiskCacheTest, processes_and_threads_share_a_directory) {
  constexpr int keys = 8, rounds = 200;
  const auto payload = [](int key) { return Bytes(static_cast<size_t>(2000 + key * 100), std::byte(key)); };
  // Reads and writes at random; what it reads is what belongs to the key. Small limit: entries come and go.
  const auto work = [&](unsigned seed) {
    const auto cache = DiskCache::open(directory_, 12'000);
    if (!cache) return false;
    for (int i = 0; i < rounds; ++i) {
      const int key = static_cast<int>(seed = seed * 1103515245 + 12345) >> 16 & (keys - 1);
      if (const auto found = (*cache)->find(fmt::format("key {}", key)); found && *found != payload(key)) return false;
      (void)(*cache)->store(fmt::format("key {}", key), payload(key));
    }
    return true;
  };
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work(1) ? 0 : 1);
  bool good[2] = {};
  std::thread first([&] { good[0] = work(2); });
  std::thread second([&] { good[1] = work(3); });
  first.join();
  second.join();
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(good[0]);
  EXPECT_TRUE(good[1]);
}

}  // namespace
}  // namespace tc::target
