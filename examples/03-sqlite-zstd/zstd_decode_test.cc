// SPDX-License-Identifier: Apache-2.0
//
// The travelling decoder against libzstd: the same text on good input, an error and no other harm on bad input
// (run with AddressSanitizer, this finds any read or write out of bounds: inputs and outputs are exact-sized heap
// blocks).
#include <gtest/gtest.h>
#include <zstd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "zstd_decode_for_test.h"

namespace {

std::string corpus() {
  std::ifstream file(TC_CORPUS, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> paragraphs() {
  std::vector<std::string> list;
  const auto text = corpus();
  for (size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find("\n\n", at), text.size());
    list.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return list;
}

std::string compress(const std::string& text, int level, bool checksum = false) {
  const std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(ZSTD_createCCtx(), ZSTD_freeCCtx);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, checksum);
  std::string out(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress2(context.get(), out.data(), out.size(), text.data(), text.size());
  EXPECT_FALSE(ZSTD_isError(size));
  out.resize(size);
  return out;
}

struct Decoded {
  long status;
  std::string text;
};

// Through blocks that are exactly as large as they say, so that a step outside is seen.
Decoded decode(const std::string& in, size_t capacity) {
  const std::unique_ptr<char[]> input(new char[in.size()]);
  in.copy(input.get(), in.size());
  const std::unique_ptr<char[]> output(new char[capacity]);
  const long size = example_zstd_decode(output.get(), capacity, input.get(), in.size());
  if (size > static_cast<long>(capacity)) ADD_FAILURE() << size << " bytes decoded into " << capacity;
  return {size, size > 0 ? std::string(output.get(), static_cast<size_t>(size)) : std::string()};
}

// What random bytes, runs, and mixtures of both do to block types that text never uses.
std::vector<std::string> odd_texts() {
  std::mt19937 random(7);
  std::vector<std::string> texts = {"", "a", std::string(300'000, 'x')};
  std::string noise(200'000, '\0');
  for (auto& c : noise) c = static_cast<char>(random());
  texts.push_back(noise);
  std::string few(100'000, '\0');
  for (auto& c : few) c = static_cast<char>('a' + random() % 3);
  texts.push_back(few);
  std::string mixed;
  for (int i = 0; i < 400; ++i) {
    mixed += std::string(random() % 500, static_cast<char>(random()));
    mixed += noise.substr(random() % 100'000, random() % 700);
    mixed += few.substr(random() % 50'000, random() % 300);
  }
  texts.push_back(mixed);
  return texts;
}

class Levels : public testing::TestWithParam<int> {};

TEST_P(Levels, the_whole_corpus_decodes_to_itself) {
  const auto text = corpus();
  ASSERT_GT(text.size(), 1'000'000u);
  EXPECT_TRUE(decode(compress(text, GetParam()), text.size()).text == text);
}

TEST_P(Levels, every_paragraph_decodes_to_itself) {
  for (const auto& text : paragraphs()) {
    const auto packed = compress(text, GetParam());
    ASSERT_EQ(example_zstd_content_size(packed.data(), packed.size()), static_cast<long long>(text.size()));
    ASSERT_EQ(decode(packed, text.size()).text, text);
  }
}

TEST_P(Levels, noise_runs_and_mixtures_decode_to_themselves) {
  for (const auto& text : odd_texts()) {
    const auto decoded = decode(compress(text, GetParam(), true), text.size());
    ASSERT_EQ(decoded.status, static_cast<long>(text.size()));
    ASSERT_TRUE(decoded.text == text);
  }
}

INSTANTIATE_TEST_SUITE_P(ZstdDecode, Levels,
                         testing::Values(-5, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19),
                         [](const auto& test) {
                           return (test.param < 0 ? "fast_" : "level_") + std::to_string(std::abs(test.param));
                         });

TEST(ZstdDecode, frames_in_a_row_and_skippable_ones_decode_to_their_texts) {
  const std::string skippable("\x50\x2a\x4d\x18\x03\x00\x00\x00xyz", 11);
  EXPECT_EQ(decode(compress("one ", 3) + skippable + compress("two", 3, true), 7).text, "one two");
}

TEST(ZstdDecode, room_that_is_too_small_is_an_error) {
  const auto text = corpus().substr(0, 5000);
  EXPECT_EQ(decode(compress(text, 3), text.size() - 1).status, -4);
}

TEST(ZstdDecode, a_wrong_checksum_is_an_error) {
  auto packed = compress(corpus().substr(0, 5000), 3, true);
  packed.back() = static_cast<char>(packed.back() ^ 1);
  EXPECT_EQ(decode(packed, 5000).status, -2);
}

TEST(ZstdDecode, input_cut_anywhere_is_an_error) {
  const auto text = corpus().substr(0, 3000);
  for (const int level : {1, 19}) {
    const auto packed = compress(text, level);
    for (size_t size = 0; size < packed.size(); ++size)
      ASSERT_LT(decode(packed.substr(0, size), text.size()).status, 0) << size << " of " << packed.size() << " bytes";
  }
}

// Without a checksum a flipped bit may yield another text, but never one that libzstd would not have made of it.
TEST(ZstdDecode, flipped_bits_do_no_harm_and_what_is_accepted_agrees_with_libzstd) {
  std::mt19937 random(42);
  const auto list = paragraphs();
  size_t refused = 0, accepted = 0;
  for (int round = 0; round < 60'000; ++round) {
    const auto& text = list[random() % list.size()];
    auto packed = compress(text, static_cast<int>(1 + random() % 6));
    for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
      const auto bit = random() % (packed.size() * 8);
      packed[bit / 8] = static_cast<char>(packed[bit / 8] ^ (1 << bit % 8));
    }
    const auto capacity = text.size() + 1000;
    const auto ours = decode(packed, capacity);
    if (ours.status < 0) {
      ++refused;
      continue;
    }
    ++accepted;
    std::string theirs(capacity, '\0');
    const size_t size = ZSTD_decompress(theirs.data(), theirs.size(), packed.data(), packed.size());
    if (ZSTD_isError(size)) continue;  // it refuses some things earlier than it must
    theirs.resize(size);
    ASSERT_EQ(ours.text, theirs);
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(accepted, 100u);
}

TEST(ZstdDecode, noise_behind_a_true_header_does_no_harm) {
  std::mt19937 random(3);
  size_t refused = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string packed("\x28\xb5\x2f\xfd\x60", 5);  // single segment, content size in two bytes
    const size_t size = random() % 120;
    packed += static_cast<char>(random());
    packed += static_cast<char>(random() % 8);
    const uint32_t block = 1u | (random() % 8 == 0 ? random() % 3 : 2u) << 1 | static_cast<uint32_t>(size) << 3;
    for (const unsigned shift : {0u, 8u, 16u}) packed += static_cast<char>(block >> shift);
    for (size_t i = 0; i < size; ++i) packed += static_cast<char>(random());
    refused += decode(packed, 4096).status < 0;
  }
  EXPECT_GT(refused, 190'000u);
}

}  // namespace
