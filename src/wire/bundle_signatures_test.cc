// SPDX-License-Identifier: Apache-2.0
//
// How signatures travel with a bundle. Whether they hold is tested in src/trust.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "wire/testing/bundles.h"

namespace tc {
namespace {

using ::testing::HasSubstr;

CodeSignature signature(unsigned char fill, uint8_t covers = CodeSignature::whole_bundle) {
  CodeSignature made;
  made.covers = covers;
  made.key.fill(std::byte{fill});
  made.signature.fill(std::byte{fill});
  return made;
}

Bundle with(Bundle bundle, const std::vector<CodeSignature>& signatures) {
  for (const auto& each : signatures) EXPECT_TRUE(bundle.add_signature(each));
  return bundle;
}

// A bundle's bytes with a section of signatures behind them that says it has `count`.
Bytes with_section(const Bundle& bundle, uint8_t count, const std::vector<CodeSignature>& signatures) {
  auto bytes = bundle.bytes();
  Writer w(bytes);
  w.u32(0x31534354).u8(count);
  for (const auto& each : signatures) w.u8(each.covers).bytes(each.key).bytes(each.signature);
  return bytes;
}

std::string error_of(const Bytes& bytes) {
  const auto bundle = Bundle::read(bytes);
  return bundle ? "" : bundle.error().message;
}

TEST(BundleSignatures, travel_in_the_file) {
  const auto bundle = with(testing::with_bundled(), {signature(1), signature(2, 1)});
  const auto bytes = bundle.bytes();
  EXPECT_EQ(bytes, with_section(testing::with_bundled(), 2, {signature(1), signature(2, 1)}));
  EXPECT_EQ(bytes.size(), bundle.size_for(bundle.carried()));
  const auto read = Bundle::read(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->signatures(), bundle.signatures());
  EXPECT_EQ(read->id(), testing::with_bundled().id());
}

TEST(BundleSignatures, travel_with_a_part_of_the_slices) {
  const auto bundle = with(testing::four_slices(), {signature(1)});
  const auto bytes = bundle.bytes_for(0b0010);
  EXPECT_EQ(bytes.size(), bundle.size_for(0b0010));
  const auto read = Bundle::read_carried(bytes, 0b0010, bundle.id());
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->signatures(), bundle.signatures());
}

TEST(BundleSignatures, are_joined_when_slices_are) {
  auto bundle = with(testing::four_slices(), {signature(1), signature(2)});
  bundle.merge(with(testing::four_slices(), {signature(2), signature(3)}));
  EXPECT_EQ(bundle.signatures(), (std::vector{signature(1), signature(2), signature(3)}));
  bundle.merge(with(testing::a_library(), {signature(4)}));
  EXPECT_EQ(bundle.signatures().size(), 3u) << "those of another bundle are not taken";
}

TEST(BundleSignatures, of_a_bundled_ifunc_are_given_to_it) {
  const auto bundle = with(testing::with_bundled(), {signature(1), signature(2, 1), signature(3, 1)});
  EXPECT_EQ(bundle.bundled("golden")->signatures(), (std::vector{signature(2), signature(3)}));
}

TEST(BundleSignatures, that_a_bundled_ifunc_brings_stay) {
  Manifest m = testing::with_bundled().manifest();
  const auto inner = with(testing::four_slices(), {signature(1)});
  const auto outer = with(Bundle::pack(m, {testing::bytes_of("code"), inner.bytes()}).value(), {signature(2, 1)});
  EXPECT_EQ(outer.bundled("golden")->signatures(), (std::vector{signature(1), signature(2)}));
}

TEST(BundleSignatures, are_not_added_twice_or_without_end) {
  auto bundle = testing::four_slices();
  for (unsigned char i = 0; i < CodeSignature::most; ++i) ASSERT_TRUE(bundle.add_signature(signature(i)));
  EXPECT_TRUE(bundle.add_signature(signature(3)));
  EXPECT_EQ(bundle.signatures().size(), CodeSignature::most);
  EXPECT_EQ(bundle.add_signature(signature(64)).error().code, TC_ERR_LIMIT);
  EXPECT_EQ(Bundle::read(bundle.bytes())->signatures().size(), CodeSignature::most);
}

TEST(BundleSignatures, cover_the_bundle_or_a_bundled_ifunc_and_nothing_else) {
  for (const uint8_t covers : {0, 2, 64, 254}) {
    EXPECT_EQ(testing::with_bundled().add_signature(signature(1, covers)).error().code, TC_ERR_INVALID);
    EXPECT_THAT(error_of(with_section(testing::with_bundled(), 1, {signature(1, covers)})),
                HasSubstr(fmt::format("covers slice {}, which is no bundled ifunc", covers)));
  }
}

TEST(BundleSignatures, a_section_that_lies_about_its_size_is_refused) {
  const auto bundle = testing::four_slices();
  EXPECT_THAT(error_of(with_section(bundle, 0, {})), HasSubstr("has 0 signatures when 1 to 64 are allowed"));
  EXPECT_THAT(error_of(with_section(bundle, 65, {})), HasSubstr("has 65 signatures"));
  EXPECT_NE(error_of(with_section(bundle, 2, {signature(1)})), "");
  EXPECT_NE(error_of(with_section(bundle, 1, {signature(1), signature(2)})), "");
  EXPECT_THAT(error_of(with_section(bundle, 2, {signature(1), signature(1)})), HasSubstr("is there twice"));
}

}  // namespace
}  // namespace tc
