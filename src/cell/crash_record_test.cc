// SPDX-License-Identifier: Apache-2.0
#include "cell/crash_record.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <random>
#include <span>
#include <string>

#include "cell/ending.h"

namespace tc::cell {
namespace {

using ::testing::HasSubstr;

CrashRecord some_record() {
  CrashRecord record{.is_complete = 1, .signal = SIGSEGV, .code = 1, .address = 8, .pc = 16, .frame_count = 2};
  record.frames[0] = 32;
  record.frames[1] = 64;
  return record;
}

std::optional<Crash> read(const CrashRecord& record) {
  auto memory = CrashMemory::create().value();
  std::memcpy(memory.record(), &record, sizeof record);
  return memory.read();
}

std::string text_of(const Crash& crash) {
  return Ending{.kind = Ending::Kind::crashed, .signal = crash.signal, .crash = crash}.text();
}

TEST(CrashRecord, is_read_as_it_was_written) {
  const auto crash = read(some_record());
  ASSERT_TRUE(crash);
  EXPECT_EQ(crash->signal, SIGSEGV);
  EXPECT_EQ(crash->code, 1);
  EXPECT_EQ(crash->system_call, -1);
  EXPECT_EQ(crash->address, 8u);
  EXPECT_EQ(crash->pc, 16u);
  EXPECT_THAT(crash->frames, ::testing::ElementsAre(32, 64));
  EXPECT_THAT(text_of(*crash), HasSubstr("at address 0x8, in code at 0x10"));
}

TEST(CrashRecord, says_nothing_before_it_is_complete_or_of_a_signal_that_does_not_exist) {
  EXPECT_FALSE(CrashMemory::create().value().read());
  for (const uint32_t is_complete : {0u, 2u, UINT32_MAX}) {
    auto record = some_record();
    record.is_complete = is_complete;
    EXPECT_FALSE(read(record)) << is_complete;
  }
  for (const int signal : {INT32_MIN, -1, 0, NSIG, INT32_MAX}) {
    auto record = some_record();
    record.signal = signal;
    EXPECT_FALSE(read(record)) << signal;
  }
}

TEST(CrashRecord, has_no_more_frames_than_it_has_room_for) {
  auto record = some_record();
  record.frame_count = UINT32_MAX;
  const auto crash = read(record);
  ASSERT_TRUE(crash);
  EXPECT_EQ(crash->frames.size(), CrashRecord::most_frames);
}

// Code in the cell may have written it. Half of the records look good at their beginning, so that the rest is read.
TEST(CrashRecord, of_any_bytes_is_taken_within_its_bounds_or_not_at_all) {
  size_t taken = 0, refused = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    std::mt19937_64 random(seed);
    CrashRecord record;
    auto* const at = reinterpret_cast<unsigned char*>(&record);
    std::generate(at, at + sizeof record, [&] { return static_cast<unsigned char>(random()); });
    if (seed % 2 == 0) {
      record.is_complete = 1;
      record.signal = static_cast<int32_t>(random() % (NSIG + 2));
      if (seed % 4 == 0) record.signal = SIGSYS;
    }
    const auto crash = read(record);
    (crash ? taken : refused) += 1;
    if (!crash) continue;
    ASSERT_TRUE(crash->signal > 0 && crash->signal < NSIG) << "seed " << seed;
    ASSERT_LE(crash->frames.size(), CrashRecord::most_frames) << "seed " << seed;
    ASSERT_TRUE(std::ranges::equal(crash->frames, std::span(record.frames).first(crash->frames.size())));
    ASSERT_FALSE(text_of(*crash).empty()) << "seed " << seed;
    ASSERT_LT(text_of(*crash).size(), 200u) << "seed " << seed;
  }
  EXPECT_GT(taken, 500u);
  EXPECT_GT(refused, 500u);
}

}  // namespace
}  // namespace tc::cell
