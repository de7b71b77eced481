// SPDX-License-Identifier: Apache-2.0
#include "target/payload_code.h"

#include <gtest/gtest.h>

#include "target/code.h"
#include "target/testing/object_builder.h"

namespace tc::target {
namespace {

TEST(PayloadCodeTest, payload_functions_of_an_object_are_found) {
  auto object = testing::counting_object();
  object.symbols[0].name = "payload_init";
  Manifest manifest;
  manifest.name = "sender";
  auto bytes = object.build();
  Slice slice;
  slice.triple = TargetTriple::host();
  slice.form = SliceForm::object;
  slice.role = SliceRole::source;
  manifest.slices.push_back(slice);
  const auto bundle = *Bundle::pack(std::move(manifest), {std::move(bytes)});
  const auto source = PayloadCode::load(bundle);
  ASSERT_TRUE(source) << source.error().message;
  EXPECT_EQ((*source)->symbol("payload_bound"), nullptr);
  void* const init = (*source)->symbol("payload_init");
  ASSERT_NE(init, nullptr);
  uint64_t counter = 1;
  reinterpret_cast<EntryPoint>(init)(nullptr, 0, &counter);
  EXPECT_EQ(counter, 2u);
}

TEST(PayloadCodeTest, a_bundle_without_payload_functions_has_no_slice_for_them) {
  const auto source = PayloadCode::load(testing::bundle_with("plain", testing::counting_object().build()));
  ASSERT_FALSE(source);
  EXPECT_EQ(source.error().code, TC_ERR_NO_SLICE);
}

}  // namespace
}  // namespace tc::target
