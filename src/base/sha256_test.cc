// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>
#include <sodium.h>

#include <string>

namespace tc {
namespace {

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

}  // namespace
}  // namespace tc
