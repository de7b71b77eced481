// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tc
