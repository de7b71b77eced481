// SPDX-License-Identifier: Apache-2.0
#include "memory/exported_memory.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <latch>
#include <thread>

#include "memory/arena.h"
#include "memory/testing/other_process.h"
#include "memory/testing/process_memory.h"
#include "memory/testing/tiny_code.h"

namespace tc::memory {
namespace {

using testing::Answer;
using ::testing::HasSubstr;
using testing::in_other_process;
using testing::returns_1;

// What the system has allocated for a memfd.
size_t allocated(int file) {
  struct stat about{};
  EXPECT_EQ(fstat(file, &about), 0);
  return static_cast<size_t>(about.st_blocks) * 512;
}

class ExportedMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::system_runs_memfds()) GTEST_SKIP() << "this system forbids to execute memfds";
    if (!testing::system_seals_future_writes()) GTEST_SKIP() << "this system has no seal for code";
    auto made = Arena::create(Arena::Kind::exported);
#ifdef TC_EMULATED
    if (!made && made.error().code == TC_ERR_UNSUPPORTED) GTEST_SKIP() << made.error().message;
#endif
    ASSERT_TRUE(made) << made.error().message;
    arena_ = std::move(*made);
    memory_ = arena_->exported();
  }
  // The function above, in memory of its own.
  Placement link() {
    auto placed = arena_->place(sizeof returns_1, 8, 64);
    EXPECT_TRUE(placed) << placed.error().message;
    std::memcpy(placed->writable, returns_1, sizeof returns_1);
    EXPECT_TRUE(arena_->seal(*placed));
    return *placed;
  }
  static int call(const Placement& at) { return testing::call(at.text); }

  std::unique_ptr<Arena> arena_;
  ExportedMemory memory_;
};

TEST_F(ExportedMemoryTest, what_one_process_links_runs_in_another_one) {
  const auto code = link();
  const Answer<int> answer;
  EXPECT_EQ(in_other_process(memory_, [&] { *answer = call(code); }), 0);
  EXPECT_EQ(*answer, 1);
}

TEST_F(ExportedMemoryTest, code_that_is_linked_while_the_other_process_has_the_memory_mapped_runs_there) {
  const auto code = link();
  std::memset(code.writable, 0, sizeof returns_1);
  const Answer<int> answer;
  // The child inherits the mapping by which this process writes.
  const auto body = [&] {
    std::memcpy(code.writable, returns_1, sizeof returns_1);
    *answer = call(code);
  };
  EXPECT_EQ(in_other_process(memory_, body), 0);
  EXPECT_EQ(*answer, 1);
  EXPECT_EQ(std::memcmp(code.text, returns_1, sizeof returns_1), 0) << "one memory";
}

TEST_F(ExportedMemoryTest, the_process_that_links_cannot_run_it) {
  const auto code = link();
  EXPECT_EQ(std::memcmp(code.text, returns_1, sizeof returns_1), 0) << "it can be read";
  EXPECT_DEATH(call(code), "");
}

TEST_F(ExportedMemoryTest, data_that_the_other_process_changes_is_changed_here) {
  const auto code = link();
  *reinterpret_cast<uint64_t*>(code.data) = 41;
  EXPECT_EQ(in_other_process(memory_, [&] { ++*reinterpret_cast<uint64_t*>(code.data); }), 0);
  EXPECT_EQ(*reinterpret_cast<uint64_t*>(code.data), 42u);
}

TEST_F(ExportedMemoryTest, the_other_process_cannot_make_the_code_writable) {
  const auto code = link();
  struct Errors {
    int mprotect, mmap, pwrite, punch, unseal;
  };
  const Answer<Errors> refused;
  const auto failed = [](auto result) { return result == decltype(result)(-1) ? errno : 0; };
  const auto body = [&] {
    auto* const begin = reinterpret_cast<void*>(memory_.address);
    refused->mprotect = failed(mprotect(begin, chunk_bytes, PROT_READ | PROT_WRITE));
    void* const again = mmap(nullptr, chunk_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.code, 0);
    refused->mmap = again == MAP_FAILED ? errno : 0;
    refused->pwrite = failed(pwrite(memory_.code, "x", 1, 0));
    refused->punch = failed(fallocate(memory_.code, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, chunk_bytes));
    refused->unseal = failed(fcntl(memory_.code, F_ADD_SEALS, F_SEAL_WRITE));
  };
  EXPECT_EQ(in_other_process(memory_, body), 0);
  EXPECT_EQ(refused->mprotect, EACCES);
  EXPECT_EQ(refused->mmap, EPERM);
  EXPECT_EQ(refused->pwrite, EPERM);
  EXPECT_EQ(refused->punch, EPERM);
  EXPECT_EQ(refused->unseal, EPERM);
  EXPECT_EQ(std::memcmp(code.text, returns_1, sizeof returns_1), 0);
}

TEST_F(ExportedMemoryTest, the_other_process_cannot_write_the_code_where_it_runs) {
  const auto code = link();
  const int status = in_other_process(memory_, [&] { *reinterpret_cast<volatile unsigned char*>(code.text) = 0; });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSEGV);
}

// It would take pages away that this process is writing to.
TEST_F(ExportedMemoryTest, nobody_can_change_the_sizes) {
  for (const int file : {memory_.code, memory_.data})
    for (const size_t size : {size_t{0}, 2 * image_half}) {
      EXPECT_EQ(ftruncate(file, static_cast<off_t>(size)), -1);
      EXPECT_EQ(errno, EPERM);
    }
}

TEST_F(ExportedMemoryTest, code_that_was_freed_is_traps_in_the_other_process) {
  const auto code = link();
  arena_->release(code);
  const int status = in_other_process(memory_, [&] { call(code); });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTRAP);
}

TEST_F(ExportedMemoryTest, addresses_that_are_taken_are_named) {
  const auto mapped = map_exported(memory_);  // this process has them
  ASSERT_FALSE(mapped);
  EXPECT_EQ(mapped.error().code, TC_ERR_NO_MEMORY);
  EXPECT_THAT(mapped.error().message, HasSubstr(fmt::format("{:#x}", memory_.address)));
  EXPECT_THAT(mapped.error().message, HasSubstr("something else"));
}

TEST_F(ExportedMemoryTest, where_the_data_has_no_room_nothing_is_mapped) {
  const Answer<int> mapped;
  const auto body = [&] {
    munmap(reinterpret_cast<void*>(memory_.address), memory_.half_bytes);  // the code's place is free
    unsigned char resident = 0;
    const bool failed = !map_exported(memory_);
    *mapped = mincore(reinterpret_cast<void*>(memory_.address), 1, &resident) == 0 ? 1 : failed ? 2 : 3;
  };
  EXPECT_EQ(in_other_process(memory_, body), 0);
  EXPECT_EQ(*mapped, 2);
}

TEST_F(ExportedMemoryTest, other_kinds_have_nothing_for_another_process) {
  const auto arena = std::move(*Arena::create(Arena::Kind::shared));
  EXPECT_EQ(arena->exported().code, -1);
  EXPECT_EQ(arena->exported().half_bytes, 0u);
}

TEST_F(ExportedMemoryTest, a_full_arena_says_how_full_it_is) {
  const auto all = arena_->place(image_half, 0, 64);
  ASSERT_TRUE(all) << all.error().message;
  const auto refused = arena_->place(64, 0, 64);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_NO_MEMORY);
  EXPECT_THAT(refused.error().message, HasSubstr(fmt::format("{} bytes of {}", image_half, image_half)));
  arena_->release(*all);
  EXPECT_TRUE(arena_->place(64, 0, 64));
}

TEST_F(ExportedMemoryTest, memory_is_allocated_when_it_is_used) {
  EXPECT_EQ(allocated(memory_.code), chunk_bytes);
  EXPECT_EQ(allocated(memory_.data), 0u);
  const auto code = *arena_->place(100, 5000, 64);
  EXPECT_EQ(allocated(memory_.code), chunk_bytes);
  EXPECT_EQ(allocated(memory_.data), 8192u);
  arena_->release(code);
}

// Nobody can give back pages of code, because they are sealed.
TEST_F(ExportedMemoryTest, freed_data_returns_to_the_system_and_freed_code_is_used_again) {
  constexpr size_t large = 16 * chunk_bytes;
  for (int i = 0; i < 20; ++i) {
    const auto code = *arena_->place(large, large, 64);
    std::memset(code.writable, 1, large);
    std::memset(code.data, 1, large);
    EXPECT_EQ(arena_->committed_bytes(), large);
    EXPECT_GE(allocated(memory_.data), large);
    arena_->release(code);
    EXPECT_LE(allocated(memory_.data), chunk_bytes);
  }
  EXPECT_EQ(allocated(memory_.code), large);
  EXPECT_EQ(arena_->committed_bytes(), large);
  EXPECT_EQ(arena_->used_bytes(), 0u);
}

TEST_F(ExportedMemoryTest, two_threads_can_link_at_the_same_time) {
  std::latch both(2);
  const auto many_times = [this, &both] {
    both.arrive_and_wait();
    for (int i = 0; i < 5000; ++i) arena_->release(link());
  };
  std::thread other(many_times);
  many_times();
  other.join();
  EXPECT_EQ(arena_->used_bytes(), 0u);
}

TEST_F(ExportedMemoryTest, an_arena_that_goes_leaves_no_mappings) {
  constexpr unsigned arenas = 30;
  const auto before = testing::process_memory();
  for (unsigned i = 0; i < arenas; ++i) {
    const auto arena = Arena::create(Arena::Kind::exported);
    ASSERT_TRUE(arena) << arena.error().message;
  }
  // A sanitizer's allocator has some of its own.
  EXPECT_LT(testing::process_memory().mappings, before.mappings + arenas);
}

}  // namespace
}  // namespace tc::memory
