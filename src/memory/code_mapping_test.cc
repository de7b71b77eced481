// SPDX-License-Identifier: Apache-2.0
//
// Memory for code on systems that are short of memory, older, or stricter than this one.
#include "memory/code_mapping.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/function_ref.h"
#include "base/testing/refused_calls.h"
#include "memory/arena.h"
#include "memory/testing/process_memory.h"
#include "memory/testing/tiny_code.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace tc::memory {
namespace {

using Kind = Arena::Kind;
using test::RefusedCall;
using testing::open_descriptors;
using testing::process_memory;
using testing::returns_1;
using testing::returns_2;

constexpr uint32_t all_bits = UINT32_MAX;

// What the system refused is refused to no other test. False: nothing can be refused here.
bool where_refused(const RefusedCall& call, FunctionRef<void()> body) {
  bool is_refused = false;
  std::thread([&] {
    is_refused = test::refuse(call);
    if (is_refused) body();
  }).join();
  return is_refused;
}

int run_tiny_code(Arena& arena) {
  const auto p = *arena.place(sizeof returns_1, 0, 64);
  std::memcpy(p.writable, returns_1, sizeof returns_1);
  EXPECT_TRUE(arena.seal(p));
  const int result = testing::call(p.text);
  arena.release(p);
  return result;
}

class OnAnotherSystem : public ::testing::Test {
 protected:
  void SetUp() override {
#ifdef TC_EMULATED
    GTEST_SKIP() << "an emulator filters no system calls";
#endif
    if (!testing::system_runs_memfds()) GTEST_SKIP() << "this system forbids to execute memfds";
    if (!testing::system_seals_future_writes()) GTEST_SKIP() << "this system has no seal for code";
    if (!where_refused({.number = -1, .error = ENOSYS}, [] {})) GTEST_SKIP() << "no system call can be filtered here";
  }
};

// It knows no MFD_NOEXEC_SEAL.
TEST_F(OnAnotherSystem, an_older_kernels_memfds_do_as_well) {
  where_refused({.number = SYS_memfd_create, .error = EINVAL, .argument = 1, .bits = 8, .value = 8}, [] {
    const auto shared = Arena::create(Kind::shared);
    ASSERT_TRUE(shared) << shared.error().message;
    EXPECT_EQ((*shared)->kind(), Kind::shared);
    EXPECT_EQ(run_tiny_code(**shared), 1);
    const auto exported = Arena::create(Kind::exported);
    EXPECT_TRUE(exported) << exported.error().message;
  });
}

TEST_F(OnAnotherSystem, images_have_mappings_of_their_own_where_memfds_are_forbidden) {
  const RefusedCall refusals[] = {
      {.number = SYS_memfd_create, .error = EPERM},
      {.number = SYS_ftruncate, .error = EPERM},
      {.number = SYS_mprotect, .error = EACCES, .argument = 1, .bits = all_bits, .value = chunk_bytes},  // executable
  };
  for (const auto& refused : refusals)
    where_refused(refused, [&] {
      const auto arena = Arena::create(Kind::shared);
      ASSERT_TRUE(arena) << arena.error().message;
      EXPECT_EQ((*arena)->kind(), Kind::separate);
      EXPECT_EQ(run_tiny_code(**arena), 1);
      const auto exported = Arena::create(Kind::exported);
      ASSERT_FALSE(exported);
      EXPECT_EQ(exported.error().code, TC_ERR_UNSUPPORTED);
    });
}

TEST_F(OnAnotherSystem, code_that_may_not_be_made_executable_is_an_error) {
  where_refused({.number = SYS_mprotect, .error = EACCES, .argument = 2, .bits = PROT_EXEC, .value = PROT_EXEC}, [] {
    const auto arena = std::move(*Arena::create(Kind::separate));
    const auto p = *arena->place(100, 0, 64);
    const auto sealed = arena->seal(p);
    ASSERT_FALSE(sealed);
    EXPECT_EQ(sealed.error().code, TC_ERR_UNSUPPORTED);
    arena->release(p);
  });
}

// Images with mappings of their own would need more of what there is too little of.
TEST_F(OnAnotherSystem, where_memory_is_short_there_is_no_arena_and_nothing_is_left_of_it) {
  const RefusedCall refusals[] = {
      {.number = SYS_fallocate, .error = ENOSPC},
      {.number = SYS_mmap, .error = ENOMEM, .argument = 1, .bits = all_bits, .value = 2 * image_half},
      {.number = SYS_mmap, .error = ENOMEM, .argument = 3, .bits = all_bits, .value = MAP_SHARED | MAP_FIXED},
      {.number = SYS_mmap, .error = ENOMEM, .argument = 3, .bits = all_bits, .value = MAP_SHARED},
      {.number = SYS_mprotect, .error = ENOMEM, .argument = 1, .bits = all_bits, .value = image_half},
  };
  for (const auto& refused : refusals)
    where_refused(refused, [&] {
      const auto descriptors = open_descriptors();
      const size_t mapped = process_memory().mapped_bytes;
      for (const auto kind : {Kind::shared, Kind::exported, Kind::shared, Kind::exported}) {
        const auto arena = Arena::create(kind);
        ASSERT_FALSE(arena);
        EXPECT_EQ(arena.error().code, TC_ERR_NO_MEMORY) << arena.error().message;
      }
      EXPECT_EQ(open_descriptors(), descriptors);
      EXPECT_LT(process_memory().mapped_bytes, mapped + image_half / 2);
    });
}

TEST_F(OnAnotherSystem, an_image_that_there_is_no_memory_for_takes_none) {
  const auto arena = std::move(*Arena::create(Kind::shared));
  // Every second chunk.
  where_refused({.number = SYS_fallocate, .error = ENOSPC, .argument = 2, .bits = chunk_bytes, .value = chunk_bytes},
                [&] {
                  const auto small = *arena->place(64, 0, 64);
                  for (int i = 0; i < 3; ++i) {
                    const auto large = arena->place(3 * chunk_bytes, 0, 64);
                    ASSERT_FALSE(large);
                    EXPECT_EQ(large.error().code, TC_ERR_NO_MEMORY);
                    EXPECT_EQ(arena->used_bytes(), 64u);
                    EXPECT_EQ(arena->committed_bytes(), chunk_bytes);
                  }
                  const auto fits = arena->place(chunk_bytes - 64, 0, 64);
                  ASSERT_TRUE(fits) << fits.error().message;
                  EXPECT_EQ(fits->text, small.text + 64);
                  arena->prepare();
                  EXPECT_EQ(arena->committed_bytes(), chunk_bytes);
                  arena->release(*fits);
                  arena->release(small);
                });
  const auto later = arena->place(3 * chunk_bytes, 0, 64);
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_EQ(arena->committed_bytes(), 3 * chunk_bytes);
  arena->release(*later);
  EXPECT_EQ(arena->committed_bytes(), chunk_bytes);
  EXPECT_EQ(arena->used_bytes(), 0u);
}

TEST_F(OnAnotherSystem, an_image_with_mappings_of_its_own_that_there_is_no_memory_for_takes_none) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto wanted = static_cast<uint32_t>(777 * page);
  where_refused({.number = SYS_mmap, .error = ENOMEM, .argument = 1, .bits = all_bits, .value = wanted}, [&] {
    const auto arena = std::move(*Arena::create(Kind::separate));
    const auto refused = arena->place(wanted, 0, 64);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, TC_ERR_NO_MEMORY);
    EXPECT_EQ(arena->used_bytes(), 0u);
    EXPECT_EQ(arena->committed_bytes(), 0u);
  });
}

// Otherwise the first write to it would be a SIGBUS.
TEST_F(OnAnotherSystem, data_for_another_process_that_there_is_no_memory_for_takes_none) {
  const auto arena = std::move(*Arena::create(Kind::exported));
  const auto file = static_cast<uint32_t>(arena->exported().data);
  where_refused({.number = SYS_fallocate, .error = ENOSPC, .argument = 0, .bits = all_bits, .value = file}, [&] {
    const auto refused = arena->place(64, 5000, 64);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, TC_ERR_NO_MEMORY);
    EXPECT_EQ(arena->used_bytes(), 0u);
    EXPECT_TRUE(arena->place(64, 0, 64)) << "it wants no data";
  });
  EXPECT_TRUE(arena->place(64, 5000, 64));
}

TEST_F(OnAnotherSystem, what_cannot_be_sealed_is_not_exported) {
  const RefusedCall refusals[] = {
      // Linux before 5.1
      {.number = SYS_fcntl, .error = EINVAL, .argument = 2, .bits = F_SEAL_FUTURE_WRITE, .value = F_SEAL_FUTURE_WRITE},
      {.number = SYS_fcntl,
       .error = EPERM,
       .argument = 2,
       .bits = all_bits,
       .value = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL},
      // it would stay executable
      {.number = SYS_mprotect, .error = EACCES, .argument = 2, .bits = all_bits, .value = PROT_READ},
  };
  for (const auto& refused : refusals)
    where_refused(refused, [&] {
      const auto descriptors = open_descriptors();
      const auto exported = Arena::create(Kind::exported);
      ASSERT_FALSE(exported);
      EXPECT_EQ(exported.error().code, TC_ERR_UNSUPPORTED) << exported.error().message;
      EXPECT_EQ(open_descriptors(), descriptors);
    });
}

TEST_F(OnAnotherSystem, memory_that_may_not_be_executed_here_is_told_from_too_little_memory) {
  const auto arena = std::move(*Arena::create(Kind::exported));
  for (const int error : {EPERM, EACCES, ENOMEM})
    where_refused({.number = SYS_mmap, .error = error, .argument = 2, .bits = PROT_EXEC, .value = PROT_EXEC}, [&] {
      const auto mapped = map_exported(arena->exported());
      ASSERT_FALSE(mapped);
      EXPECT_EQ(mapped.error().code, error == ENOMEM ? TC_ERR_NO_MEMORY : TC_ERR_UNSUPPORTED);
      EXPECT_NE(mapped.error().message.find(std::strerror(error)), std::string::npos) << mapped.error().message;
    });
}

// A service may be started without standard input: then its first file has the number 0.
class WithoutInput : public ::testing::Test {
 protected:
  void SetUp() override { close_input(); }
  void TearDown() override {
    close_input();
    if (saved_ >= 0) dup2(saved_, 0);
    close(saved_);
  }
  static void close_input() { close(0); }
  static bool input_is_open() { return fcntl(0, F_GETFD) >= 0; }

 private:
  const int saved_ = fcntl(0, F_DUPFD_CLOEXEC, 3);
};

TEST_F(WithoutInput, a_memfd_of_code_may_have_the_number_0) {
  if (!testing::system_runs_memfds()) GTEST_SKIP() << "this system forbids to execute memfds";
  {
    const auto mapping = CodeMapping::create();
    ASSERT_TRUE(mapping) << mapping.error().message;
    EXPECT_TRUE(input_is_open());
  }
  EXPECT_FALSE(input_is_open());
}

TEST_F(WithoutInput, a_memfd_of_data_may_have_the_number_0) {
  if (!testing::system_runs_memfds()) GTEST_SKIP() << "this system forbids to execute memfds";
  if (!testing::system_seals_future_writes()) GTEST_SKIP() << "this system has no seal for code";
  ASSERT_EQ(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  {
    auto mapping = CodeMapping::create();
    ASSERT_TRUE(mapping) << mapping.error().message;
    close_input();
    const auto moved = mapping->move_out();
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_EQ(mapping->exported().data, 0);
    EXPECT_TRUE(mapping->is_out());
  }
  EXPECT_FALSE(input_is_open());
}

TEST(CodeMapping, an_arena_that_goes_leaves_no_descriptors_and_no_addresses) {
  const auto descriptors = open_descriptors();
  const size_t mapped = process_memory().mapped_bytes;
  for (const auto kind : {Kind::shared, Kind::separate, Kind::exported})
    for (int i = 0; i < 30; ++i) {
      const auto arena = Arena::create(kind);
      if (!arena) continue;
      const auto p = (*arena)->place(1000, 1000, 64);
      ASSERT_TRUE(p) << p.error().message;
      (*arena)->release(*p);
    }
  EXPECT_EQ(open_descriptors(), descriptors);
  EXPECT_LT(process_memory().mapped_bytes, mapped + 8 * image_half) << "one half for each arena would be far more";
}

TEST(Populate, says_whether_it_mapped_the_pages) {
#ifdef TC_EMULATED
  GTEST_SKIP() << "an emulator maps pages as it likes";
#endif
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const memory = mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  (void)madvise(memory, 4 * page, MADV_NOHUGEPAGE);
  auto* const pages = static_cast<std::byte*>(memory);
  pages[page] = std::byte{7};
  const bool is_mapped = populate(pages, 3 * page);
  EXPECT_EQ(testing::is_resident(pages), is_mapped);
  EXPECT_EQ(testing::is_resident(pages + 2 * page), is_mapped);
  EXPECT_FALSE(testing::is_resident(pages + 3 * page));
  EXPECT_EQ(pages[page], std::byte{7}) << "the content stays";
  munmap(memory, 4 * page);
  EXPECT_FALSE(populate(pages, page)) << "nothing is there";
}

// As QEMU before 8.1 does, which looks for new code only where it is written: nothing changes where it runs.
TEST(NewCode, is_not_said_to_run_where_old_code_does) {
  const auto arena = std::move(*Arena::create(Kind::separate));
  for (const auto* old : {returns_1, returns_2}) {
    const auto p = *arena->place(sizeof returns_1, 0, 64);
    std::memcpy(p.writable, old, sizeof returns_1);
    ASSERT_TRUE(arena->seal(p));
    std::array<std::byte, 64> written_elsewhere{};
    EXPECT_FALSE(new_code_runs(p.text, written_elsewhere.data()));
    arena->release(p);
  }
}

TEST(NewCode, leaves_no_trace_of_the_probe) {
  auto mapping = CodeMapping::create();
  if (!mapping) GTEST_SKIP() << mapping.error().message;
  const bool runs = new_code_runs(mapping->code(), mapping->writable());
#ifndef TC_EMULATED
  EXPECT_TRUE(runs);
#else
  (void)runs;
#endif
  for (size_t i = 0; i < 64; ++i) EXPECT_EQ(mapping->writable()[i], std::byte{0});
}

}  // namespace
}  // namespace tc::memory
