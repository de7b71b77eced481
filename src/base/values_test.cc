// SPDX-License-Identifier: Apache-2.0
//
// Values: bytes and their buffers, hashes, random numbers, ranges of addresses, results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "base/address_range.h"
#include "base/buffer_pool.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/content_id.h"
#include "base/random.h"
#include "base/result.h"
#include "base/sha256.h"

namespace tc {
namespace {

// ---- Bytes

TEST(Bytes, what_a_writer_wrote_a_reader_reads) {
  Bytes out;
  Writer(out).u8(1).u16(0x0203).u32(0x04050607).u64(0x08090a0b0c0d0e0f).str8("ifunc").str16("node");
  Reader in(out);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.u16(), 0x0203);
  EXPECT_EQ(in.u32(), 0x04050607u);
  EXPECT_EQ(in.u64(), 0x08090a0b0c0d0e0fu);
  EXPECT_EQ(in.str8(), "ifunc");
  EXPECT_EQ(in.str16(), "node");
  EXPECT_TRUE(in.finish_exactly("test"));
}

TEST(Bytes, numbers_are_little_endian_on_the_wire) {
  Bytes out;
  Writer(out).u32(0x01020304);
  EXPECT_EQ(std::to_integer<int>(out[0]), 4);
  EXPECT_EQ(std::to_integer<int>(out[3]), 1);
}

TEST(Bytes, a_read_past_the_end_yields_zero_and_fails_for_good) {
  const Bytes three(3, std::byte{0xff});
  Reader in(three);
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_EQ(in.u8(), 0u) << "a reader that failed reads nothing more";
  const auto verdict = in.finish("header");
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, TC_ERR_MALFORMED);
  EXPECT_EQ(verdict.error().message, "header: 4 bytes wanted at byte 0 when only 3 are left");
}

TEST(Bytes, a_string_whose_length_lies_is_refused) {
  Bytes out;
  Writer(out).u8(200).u8('x');
  Reader in(out);
  EXPECT_EQ(in.str8(), "");
  EXPECT_FALSE(in.ok());
}

TEST(Bytes, bytes_left_over_are_an_error_where_the_end_must_be_exact) {
  const Bytes two(2);
  Reader in(two);
  in.u8();
  EXPECT_TRUE(in.finish("x"));
  ASSERT_FALSE(in.finish_exactly("x"));
  EXPECT_EQ(in.finish_exactly("x").error().message, "x: 2 bytes long when its content ends at byte 1");
}

TEST(Bytes, a_refused_value_is_an_error_at_its_place) {
  const Bytes two(2);
  Reader in(two);
  in.u8();
  in.refuse();
  ASSERT_FALSE(in.finish("kind"));
  EXPECT_EQ(in.finish("kind").error().message, "kind: value before byte 1 is not allowed there");
}

TEST(Bytes, alignment_pads_with_zeroes) {
  Bytes out;
  Writer(out).u8(9).align(8).u8(7);
  ASSERT_EQ(out.size(), 9u);
  EXPECT_EQ(std::to_integer<int>(out[5]), 0);
}

TEST(AlignedCopy, lies_at_a_multiple_of_any_alignment_and_is_equal) {
  Bytes memory;
  const Bytes bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    const auto* const copy = aligned_copy(memory, bytes, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copy) % alignment, 0u);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), copy));
    EXPECT_LE(copy + bytes.size(), memory.data() + memory.size());
  }
  EXPECT_NE(aligned_copy(memory, {}, 64), nullptr);
}

// ---- Buffers

constexpr size_t kib = 1024, mib = 1024 * kib;
constexpr uint64_t second_ns = 1'000'000'000;

// Fresh memory of the system is zero.
void mark(const PooledBuffer& buffer) { std::memset(buffer.data(), 0x5a, buffer.size()); }
bool is_marked(const PooledBuffer& buffer) { return buffer.data()[buffer.size() - 1] == std::byte{0x5a}; }

TEST(BufferPool, memory_is_aligned_to_pages_and_can_be_used_to_its_end) {
  const auto pool = BufferPool::create(64 * mib);
  for (const size_t size : {size_t{0}, size_t{1}, 64 * kib, 64 * kib + 1, 2 * mib, 3 * mib + 5}) {
    auto buffer = pool->take(size);
    ASSERT_TRUE(buffer) << buffer.error().message;
    ASSERT_TRUE(*buffer);
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 4096, 0u);
    mark(*buffer);
  }
}

TEST(BufferPool, memory_that_was_used_is_used_again_for_what_fits_it) {
  const auto pool = BufferPool::create(64 * mib);
  for (const size_t size : {256 * kib, mib}) {
    auto buffer = pool->take(size);
    ASSERT_TRUE(buffer);
    mark(*buffer);
  }
  EXPECT_FALSE(is_marked(*pool->take(2 * mib))) << "neither is large enough";
  EXPECT_FALSE(is_marked(*pool->take(64 * kib))) << "most of either would be wasted";
  auto again = pool->take(200 * kib);
  ASSERT_TRUE(again);
  EXPECT_TRUE(is_marked(*again));
  EXPECT_EQ(pool->budget().used(), 256 * kib) << "the smaller one";
}

TEST(BufferPool, memory_that_was_used_is_not_used_for_less_than_half_of_it) {
  const auto pool = BufferPool::create(64 * mib);
  mark(*pool->take(192 * kib));
  EXPECT_FALSE(is_marked(*pool->take(64 * kib)));
  auto half = pool->take(96 * kib);
  ASSERT_TRUE(half);
  EXPECT_TRUE(is_marked(*half));
}

TEST(BufferPool, memory_in_use_counts_in_steps_until_it_is_returned) {
  const auto pool = BufferPool::create(64 * mib);
  {
    auto small = pool->take(1), large = pool->take(64 * kib + 1), huge = pool->take(2 * mib + 1);
    EXPECT_EQ(pool->budget().used(), 64 * kib + 128 * kib + 4 * mib);
  }
  EXPECT_EQ(pool->budget().used(), 0u);
}

TEST(BufferPool, more_than_the_limit_is_refused_with_both_numbers) {
  const auto pool = BufferPool::create(128 * kib);
  auto first = pool->take(100 * kib);
  ASSERT_TRUE(first);
  const auto second = pool->take(1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, TC_ERR_LIMIT);
  EXPECT_NE(second.error().message.find("131072 bytes are in use"), std::string::npos) << second.error().message;
  EXPECT_EQ(pool->budget().used(), 128 * kib);
  *first = PooledBuffer();
  first = fail(TC_ERR_LIMIT, "returned");
  EXPECT_TRUE(pool->take(1));
}

TEST(BufferPool, what_is_handed_over_does_not_count_any_more) {
  const auto pool = BufferPool::create(64 * kib);
  auto mine = pool->take(10);
  ASSERT_TRUE(mine);
  mine->hand_over();
  EXPECT_EQ(pool->budget().used(), 0u);
  EXPECT_TRUE(pool->take(10));
}

TEST(BufferPool, memory_that_the_system_does_not_have_is_an_error_and_does_not_count) {
  const auto pool = BufferPool::create(SIZE_MAX);
  mark(*pool->take(256 * kib));
  const auto refused = pool->take(SIZE_MAX / 2);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_NO_MEMORY);
  EXPECT_EQ(pool->budget().used(), 0u);
  auto next = pool->take(256 * kib);
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_FALSE(is_marked(*next)) << "what was kept was given back first";
}

TEST(BufferPool, memory_that_was_unused_for_a_second_goes_back_to_the_system) {
  const auto pool = BufferPool::create(64 * mib);
  mark(*pool->take(256 * kib));
  pool->trim(now_ns());
  {
    auto kept = pool->take(256 * kib);
    ASSERT_TRUE(is_marked(*kept));
  }
  pool->trim(now_ns() + 2 * second_ns);
  EXPECT_FALSE(is_marked(*pool->take(256 * kib)));
}

// A message whose end never comes must not take what it announces.
TEST(BufferPool, reserved_memory_counts_as_it_is_used) {
  const auto pool = BufferPool::create(8 * mib);
  std::vector<PooledBuffer> buffers;
  for (int i = 0; i < 13; ++i) {
    auto buffer = pool->reserve(6 * mib);
    ASSERT_TRUE(buffer) << buffer.error().message;
    buffers.push_back(std::move(*buffer));
  }
  EXPECT_EQ(pool->budget().used(), 0u);
  EXPECT_TRUE(buffers[0].use(1));
  EXPECT_EQ(pool->budget().used(), 2 * mib) << "a page of this size is touched as a whole";
  EXPECT_TRUE(buffers[0].use(2 * mib));
  EXPECT_EQ(pool->budget().used(), 2 * mib);
  EXPECT_TRUE(buffers[0].use(6 * mib));
  mark(buffers[0]);
  EXPECT_TRUE(buffers[1].use(2 * mib));
  const auto refused = buffers[2].use(1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_LIMIT);
  EXPECT_THAT(refused.error().message, ::testing::HasSubstr("8388608 bytes are in use for messages, 2097152 more"));
  buffers.clear();
  EXPECT_EQ(pool->budget().used(), 0u);
}

// What is kept has pages already.
TEST(BufferPool, reserved_memory_that_was_used_before_counts_at_once) {
  const auto pool = BufferPool::create(512 * kib);
  mark(*pool->take(256 * kib));
  auto used = pool->reserve(256 * kib);
  ASSERT_TRUE(used);
  EXPECT_TRUE(is_marked(*used));
  EXPECT_EQ(pool->budget().used(), 256 * kib);
  *used = PooledBuffer();
  auto most = pool->take(384 * kib);
  auto fresh = pool->reserve(256 * kib);
  ASSERT_TRUE(fresh) << "fresh memory, as the budget has no room for the other";
  EXPECT_FALSE(is_marked(*fresh));
  EXPECT_EQ(pool->budget().used(), 384 * kib);
}

TEST(BufferPool, memory_that_was_used_in_part_is_not_kept_for_others) {
  const auto pool = BufferPool::create(8 * mib);
  {
    auto part = pool->reserve(256 * kib);
    ASSERT_TRUE(part);
    ASSERT_TRUE(part->use(64 * kib));
    mark(*part);
  }
  EXPECT_FALSE(is_marked(*pool->take(256 * kib)));
  {
    auto whole = pool->reserve(256 * kib);
    ASSERT_TRUE(whole);
    ASSERT_TRUE(whole->use(256 * kib));
    mark(*whole);
  }
  EXPECT_TRUE(is_marked(*pool->take(256 * kib)));
}

TEST(Charge, is_of_a_share_and_of_the_budget_or_of_neither) {
  MemoryBudget budget(100);
  const auto share = std::make_shared<MemoryBudget>(60);
  Charge one, two, three, four;
  EXPECT_TRUE(one.take(budget, 50, share));
  EXPECT_FALSE(two.take(budget, 11, share)) << "beyond the share";
  EXPECT_TRUE(three.take(budget, 50)) << "of a peer without one";
  EXPECT_FALSE(two.take(budget, 1, share)) << "beyond the budget";
  EXPECT_EQ(share->used(), 50u);
  EXPECT_TRUE(four.take_share(share, 10));
  EXPECT_EQ(budget.used(), 100u);
  one = {};
  EXPECT_EQ(share->used(), 10u);
  EXPECT_EQ(budget.used(), 50u);
}

// ---- Content ids

TEST(ContentId, is_the_sha256_of_the_bytes) {
  EXPECT_EQ(ContentId::of(as_bytes("abc")).hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(ContentId, differs_for_bytes_that_differ) {
  EXPECT_NE(ContentId::of(as_bytes("abc")), ContentId::of(as_bytes("abd")));
}

TEST(ContentId, survives_a_trip_through_its_bytes) {
  const auto id = ContentId::of(as_bytes("abc"));
  EXPECT_EQ(ContentId::from(id.bytes), id);
  EXPECT_EQ(ContentId::from(as_bytes("short")), ContentId{});
}

TEST(ContentId, has_a_short_form_for_messages) {
  EXPECT_EQ(ContentId::of(as_bytes("abc")).short_hex(), "ba7816bf8f01");
}

// ---- SHA-256

std::string hex(const Sha256& digest) {
  std::string text;
  for (const auto byte : digest) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

// FIPS 180-4's own examples.
constexpr std::pair<const char*, const char*> examples[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
};

TEST(Sha256, the_standards_examples_come_out) {
  for (const auto& [text, digest] : examples) {
    EXPECT_EQ(hex(sha256(as_bytes(text))), digest) << text;
    EXPECT_EQ(hex(portable_sha256(as_bytes(text))), digest) << text;
  }
}

// Two implementations that share no line.
TEST(Sha256, libsodium_agrees_at_every_length) {
  Bytes bytes(1025);
  uint32_t seed = 3;
  for (auto& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  for (size_t length = 0; length <= bytes.size(); ++length) {
    Sha256 expected;
    ::crypto_hash_sha256(reinterpret_cast<unsigned char*>(expected.data()),
                         reinterpret_cast<const unsigned char*>(bytes.data()), length);
    ASSERT_EQ(hex(portable_sha256(ByteView(bytes).first(length))), hex(expected)) << length << " bytes";
  }
}

TEST(Sha256, the_cpus_instructions_agree_with_the_portable_way_at_every_length) {
#if defined(__x86_64__)
  if (!has_sha_extensions()) GTEST_SKIP() << "this CPU has no SHA extensions";
  Bytes bytes(1025);
  uint32_t seed = 1;
  for (auto& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  for (size_t begin = 0; begin < 3; ++begin)
    for (size_t length = 0; begin + length <= bytes.size(); ++length) {
      const auto part = ByteView(bytes).subspan(begin, length);
      ASSERT_EQ(hex(sha256_by_extensions(part)), hex(portable_sha256(part))) << length << " bytes from " << begin;
    }
#else
  GTEST_SKIP() << "no instructions for SHA-256 are used on this architecture";
#endif
}

TEST(Sha256, two_messages_at_once_have_the_digests_that_each_has_alone) {
  Bytes bytes(400);
  uint32_t seed = 7;
  for (auto& byte : bytes) byte = static_cast<std::byte>((seed = seed * 1664525 + 1013904223) >> 24);
  for (const size_t a : {0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 300, 400})
    for (size_t b = 0; b <= bytes.size(); ++b) {
      const auto first = ByteView(bytes).first(a), second = ByteView(bytes).last(b);
      const auto [of_first, of_second] = sha256_pair(first, second);
      ASSERT_EQ(hex(of_first), hex(portable_sha256(first))) << a << " bytes beside " << b;
      ASSERT_EQ(hex(of_second), hex(portable_sha256(second))) << b << " bytes beside " << a;
    }
}

// ---- Random numbers

TEST(Random, numbers_do_not_repeat) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_number());
  EXPECT_EQ(seen.size(), 1000u);
}

// The system may give fewer than were asked for, from 257 on.
TEST(Random, long_stretches_are_filled_to_their_end) {
  std::vector<std::byte> bytes(64 * 1024);
  random_bytes(bytes);
  for (size_t at = 0; at < bytes.size(); at += 256)
    EXPECT_FALSE(std::all_of(&bytes[at], &bytes[at] + 256, [](std::byte byte) { return byte == std::byte{0}; })) << at;
}

// ---- Ranges of addresses

AddressRange range(std::string_view text) { return AddressRange::parse(text).value(); }

TEST(AddressRange, contains_the_addresses_that_begin_alike) {
  EXPECT_TRUE(range("10.0.0.0/8").contains("10.255.1.2"));
  EXPECT_FALSE(range("10.0.0.0/8").contains("11.0.0.0"));
  EXPECT_TRUE(range("192.168.4.0/22").contains("192.168.7.255"));
  EXPECT_FALSE(range("192.168.4.0/22").contains("192.168.8.0"));
  EXPECT_TRUE(range("fd00::/8").contains("fdff::1"));
  EXPECT_FALSE(range("fd00::/8").contains("fe00::1"));
}

TEST(AddressRange, an_address_alone_is_a_range_of_one) {
  EXPECT_TRUE(range("10.0.0.1").contains("10.0.0.1"));
  EXPECT_FALSE(range("10.0.0.1").contains("10.0.0.2"));
  EXPECT_TRUE(range("::1").contains("::1"));
}

TEST(AddressRange, zero_bits_are_everybody_of_one_kind) {
  EXPECT_TRUE(range("0.0.0.0/0").contains("203.0.113.9"));
  EXPECT_FALSE(range("0.0.0.0/0").contains("::1"));
  EXPECT_TRUE(range("::/0").contains("203.0.113.9"));
}

TEST(AddressRange, an_address_mapped_into_ipv6_counts_as_ipv4) {
  EXPECT_TRUE(range("10.0.0.0/8").contains("::ffff:10.1.2.3"));
}

TEST(AddressRange, what_is_no_range_is_refused_with_the_reason) {
  for (const auto* text : {"", "10.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "fd00::/129",
                           "node.example", "10.0.0.1/8", "fd00::1/8"}) {
    const auto parsed = AddressRange::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, TC_ERR_INVALID);
  }
}

TEST(AddressRange, contains_no_name) { EXPECT_FALSE(range("0.0.0.0/0").contains("localhost")); }

// ---- Results

Result<int> half(int value) {
  if (value % 2 != 0) return fail(TC_ERR_INVALID, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  TC_ASSIGN(const int once, half(value));
  return half(once);
}

TEST(Result, an_error_is_passed_on_with_its_words) {
  EXPECT_EQ(quarter(8), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().code, TC_ERR_INVALID);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
}

TEST(Result, context_goes_in_front) {
  const Status status = context("loading tsi", Error{TC_ERR_NO_SLICE, "no slice for riscv64"});
  EXPECT_EQ(status.error().message, "loading tsi: no slice for riscv64");
  EXPECT_EQ(status.error().code, TC_ERR_NO_SLICE);
}

TEST(Result, a_status_from_the_wire_that_nobody_knows_is_an_internal_error) {
  EXPECT_EQ(status_from_wire(TC_ERR_TIMEOUT), TC_ERR_TIMEOUT);
  EXPECT_EQ(status_from_wire(4711), TC_ERR_INTERNAL);
  EXPECT_EQ(status_name(TC_ERR_DENIED), "denied by policy");
}

}  // namespace
}  // namespace tc
