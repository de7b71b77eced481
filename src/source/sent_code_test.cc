// SPDX-License-Identifier: Apache-2.0
#include "source/sent_code.h"

#include <gtest/gtest.h>

namespace tc::source {
namespace {

Bundle make_bundle(char content, size_t size = 1000) {
  Manifest manifest;
  manifest.name = "tsi";
  Slice slice;
  slice.triple = TargetTriple::host();
  manifest.slices.push_back(slice);
  return *Bundle::pack(manifest, {Bytes(size, static_cast<std::byte>(content))});
}

TEST(SentCode, what_was_sent_is_found_and_shares_its_memory_with_the_bundle) {
  SentCode sent(1 << 20);
  const auto bundle = make_bundle('a');
  sent.keep(bundle);
  ASSERT_NE(sent.find(bundle.id()), nullptr);
  EXPECT_EQ(sent.find(bundle.id())->stored(0).data(), bundle.stored(0).data());
  EXPECT_EQ(sent.find(make_bundle('b').id()), nullptr);
}

TEST(SentCode, what_is_sent_to_many_peers_is_kept_once) {
  SentCode sent(1 << 20);
  const auto bundle = make_bundle('a');
  sent.keep(bundle);
  const auto once = sent.bytes();
  sent.keep(bundle);
  EXPECT_EQ(sent.bytes(), once);
}

TEST(SentCode, beyond_the_budget_the_code_that_was_sent_first_goes) {
  SentCode sent(3 * make_bundle('a').size_for(1));
  for (const char content : {'a', 'b', 'c', 'd'}) sent.keep(make_bundle(content));
  EXPECT_EQ(sent.find(make_bundle('a').id()), nullptr);
  for (const char content : {'b', 'c', 'd'}) EXPECT_NE(sent.find(make_bundle(content).id()), nullptr) << content;
}

TEST(SentCode, each_code_beyond_the_budget_costs_the_oldest_that_is_left) {
  const auto size = make_bundle('a').size_for(1);
  SentCode sent(2 * size);
  for (char content = 'a'; content <= 'z'; ++content) {
    sent.keep(make_bundle(content));
    EXPECT_LE(sent.bytes(), 2 * size) << content;
    EXPECT_NE(sent.find(make_bundle(content).id()), nullptr) << content;
    if (content >= 'c') {
      EXPECT_EQ(sent.find(make_bundle(static_cast<char>(content - 2)).id()), nullptr) << content;
    }
  }
}

TEST(SentCode, code_that_is_larger_than_the_budget_is_not_kept) {
  SentCode sent(100);
  sent.keep(make_bundle('a'));
  EXPECT_EQ(sent.find(make_bundle('a').id()), nullptr);
  EXPECT_EQ(sent.bytes(), 0u);
}

TEST(SentCode, a_section_stays_valid_when_another_one_is_made) {
  SentCode sent(1 << 20);
  const auto first = sent.section(make_bundle('a'), 1);
  const auto copy = *first;
  EXPECT_EQ(sent.section(make_bundle('a'), 1), first) << "it is made once";
  EXPECT_NE(*sent.section(make_bundle('b'), 1), copy);
  EXPECT_EQ(*first, copy);
}

}  // namespace
}  // namespace tc::source
