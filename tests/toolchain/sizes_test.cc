// SPDX-License-Identifier: Apache-2.0
//
// Every byte of a bundle is sent to every node: the papers' smallest ifunc was 5159 bytes for two ISAs.
#include <gtest/gtest.h>

#include <iostream>

#include "build_test_support.h"

namespace tc::toolchain {
namespace {

Bundle tsi(bool objects) {
  Workshop shop;
  shop.request.inputs = {TC_EXAMPLES_DIR "/01-increment/tsi.c"};
  shop.request.targets = default_targets();
  shop.request.objects = objects;
  return shop.bundle();
}

TEST(ToolchainSizes, tsi_for_two_isas_is_at_most_1500_bytes_as_bitcode) {
  const auto size = tsi(false).bytes().size();
  std::cout << "TSI, two ISAs, bitcode: " << size << " bytes\n";
  EXPECT_GT(size, 0u);
  EXPECT_LE(size, 1500u);
}

TEST(ToolchainSizes, tsi_for_two_isas_is_at_most_2500_bytes_with_objects) {
  const auto bundle = tsi(true);
  std::cout << "TSI, two ISAs, bitcode and objects: " << bundle.bytes().size() << " bytes\n";
  ASSERT_EQ(bundle.manifest().slices.size(), 4u);
  EXPECT_LE(bundle.bytes().size(), 2500u);
  for (const auto& slice : bundle.manifest().slices) {
    if (slice.form != SliceForm::object) continue;
    std::cout << "  object for " << slice.triple.text << ": " << slice.stored_size << " bytes\n";
    EXPECT_LE(slice.stored_size, 450u);
    EXPECT_FALSE(slice.compressed);  // it must load at once
  }
}

TEST(ToolchainSizes, large_bitcode_is_compressed_and_unpacks_to_the_same) {
  std::string text = "void foo_main(void *p, size_t n, void *t) { (void)p; int *x = t; switch (n) {\n";
  for (int i = 0; i < 300; ++i)
    text += fmt::format("case {}: x[{}] += x[{}] / {}; break;\n", i * 7, i, i * i % 91, i + 3);
  const auto bundle = c_file("foo", text + "} }\n").bundle();
  const auto& slice = bundle.manifest().slices[slice_of(bundle, SliceRole::target, SliceForm::bitcode)];
  EXPECT_TRUE(slice.compressed);
  EXPECT_LT(slice.stored_size, slice.unpacked_size);
  EXPECT_NE(read_module(bundle, SliceRole::target).text().find("switch"), std::string::npos);
}

}  // namespace
}  // namespace tc::toolchain
