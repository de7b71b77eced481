// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>

#include "transport/ring/ring.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;
using Side = RingMemory::Side;

constexpr size_t ring_bytes = 4096;
constexpr off_t both_bytes = 2 * 2 * 4096;  // each ring has its control area before it, and begins on a page
constexpr int all_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Fd memory_of(off_t bytes, int seals) {
  Fd fd(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(ftruncate(fd.get(), bytes), 0);
  if (seals != 0) {
    EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  }
  return fd;
}

Fd copy_of(const Fd& fd) { return Fd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

void expect_refused(Fd descriptor, size_t bytes, const char* why) {
  const auto adopted = RingMemory::adopt(std::move(descriptor), bytes);
  ASSERT_FALSE(adopted) << why;
  EXPECT_EQ(adopted.error().code, TC_ERR_MALFORMED);
  EXPECT_THAT(adopted.error().message, HasSubstr(why));
}

TEST(ARingMemory, both_sides_see_the_same_two_rings_and_both_are_empty) {
  auto ours = RingMemory::create(ring_bytes);
  ASSERT_TRUE(ours) << ours.error().message;
  const auto theirs = RingMemory::adopt(copy_of(ours->descriptor()), ring_bytes);
  ASSERT_TRUE(theirs) << theirs.error().message;
  for (const Side side : {Side::creator, Side::receiver}) {
    const RingView here = ours->written_by(side), there = theirs->written_by(side);
    EXPECT_NE(here.data, there.data);
    EXPECT_EQ(here.control->consumed, ring_start);
    EXPECT_EQ(here.data[8], std::byte{0});
    here.data[100] = std::byte{side == Side::creator ? uint8_t{1} : uint8_t{2}};
    EXPECT_EQ(there.data[100], here.data[100]);
  }
  EXPECT_NE(ours->written_by(Side::creator).data[100], ours->written_by(Side::receiver).data[100]);
}

TEST(ARingMemory, stays_mapped_without_its_descriptor_and_when_it_is_moved) {
  auto ours = RingMemory::create(ring_bytes).value();
  ours.close_descriptor();
  EXPECT_FALSE(ours.descriptor());
  const RingMemory moved = std::move(ours);
  moved.written_by(Side::receiver).data[ring_bytes - 1] = std::byte{1};
  EXPECT_EQ(moved.bytes(), ring_bytes);
}

TEST(ARingMemory, a_peer_cannot_change_its_size) {
  const auto ours = RingMemory::create(ring_bytes).value();
  EXPECT_NE(ftruncate(ours.descriptor().get(), 0), 0);
  EXPECT_NE(ftruncate(ours.descriptor().get(), both_bytes + 4096), 0);
  EXPECT_NE(fcntl(ours.descriptor().get(), F_ADD_SEALS, F_SEAL_WRITE), 0) << "nor make our stores fail";
}

TEST(ARingMemory, a_hole_that_a_peer_punches_reads_as_zero_and_can_be_written_again) {
  const auto ours = RingMemory::create(ring_bytes).value();
  const RingView ring = ours.written_by(Side::creator);
  ring.data[8] = std::byte{1};
  ASSERT_EQ(fallocate(ours.descriptor().get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, both_bytes), 0);
  EXPECT_EQ(ring.data[8], std::byte{0});
  ring.data[8] = std::byte{2};
  EXPECT_EQ(ring.data[8], std::byte{2});
}

TEST(ARingMemory, memory_whose_size_is_not_sealed_is_refused) {
  for (const int seals : {0, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_SEAL})
    expect_refused(memory_of(both_bytes, seals), ring_bytes, "not sealed");
}

TEST(ARingMemory, memory_that_is_too_small_or_too_large_is_refused_with_both_sizes) {
  for (const off_t bytes : {off_t{0}, off_t{1}, both_bytes - 4096, both_bytes - 1, both_bytes + 1, both_bytes + 4096})
    expect_refused(memory_of(bytes, all_seals), ring_bytes, "two rings of 4096 take 16384");
  EXPECT_TRUE(RingMemory::adopt(memory_of(both_bytes, all_seals), ring_bytes));
}

TEST(ARingMemory, a_ring_of_an_impossible_size_is_refused_before_its_memory_is_checked) {
  for (const size_t bytes : {size_t{0}, size_t{1}, ring_bytes / 2, ring_bytes - 1, ring_bytes + 1, size_t{5000},
                             2 * max_ring_bytes, size_t{0xffffffff}, ~size_t{0}})
    expect_refused(memory_of(both_bytes, all_seals), bytes, "a power of two");
}

TEST(ARingMemory, a_descriptor_of_something_else_is_refused) {
  expect_refused(Fd(), ring_bytes, "not sealed");
  expect_refused(Fd(::open("/dev/zero", O_RDWR | O_CLOEXEC)), ring_bytes, "not sealed");
  expect_refused(Fd(::open("/", O_RDONLY | O_CLOEXEC)), ring_bytes, "not sealed");
  expect_refused(Fd(eventfd(0, EFD_CLOEXEC)), ring_bytes, "not sealed");
  expect_refused(Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)), ring_bytes, "not sealed");
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Fd writer(ends[1]);
  expect_refused(Fd(ends[0]), ring_bytes, "not sealed");
}

// F_SEAL_WRITE forbids to map it for writing.
TEST(ARingMemory, memory_that_may_not_be_written_is_refused) {
  const auto sealed = RingMemory::adopt(memory_of(both_bytes, all_seals | F_SEAL_WRITE), ring_bytes);
  ASSERT_FALSE(sealed);
  EXPECT_FALSE(sealed.error().message.empty());
  const Fd writable = memory_of(both_bytes, all_seals);
  char path[64];
  (void)std::snprintf(path, sizeof path, "/proc/self/fd/%d", writable.get());
  const auto read_only = RingMemory::adopt(Fd(::open(path, O_RDONLY | O_CLOEXEC)), ring_bytes);
  ASSERT_FALSE(read_only);
  EXPECT_FALSE(read_only.error().message.empty());
}

}  // namespace
}  // namespace tc::transport
