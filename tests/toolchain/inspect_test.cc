// SPDX-License-Identifier: Apache-2.0
#include "toolchain/inspect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "build_test_support.h"

namespace tc::toolchain {
namespace {

using testing::HasSubstr;
using testing::Not;

Bundle example() {
  auto shop = c_file("foo",
                     "#pragma comment(lib, \"m\")\nTC_PAYLOAD_ALIGN(64);\ndouble sin(double);\n"
                     "void foo_main(void *p, size_t n, void *t) { (void)n, (void)t; *(double *)p = sin(*(double *)p);"
                     " tc_reply(p, 8); }\n");
  shop.request.targets = default_targets();
  return shop.bundle();
}

TEST(Inspect, people_see_every_part_of_the_manifest) {
  const auto bundle = example();
  const auto text = describe(bundle);
  for (const auto& part :
       {std::string("foo"), bundle.id().hex(), std::string("libm.so.6"), std::string("sin tc_reply"),
        std::string("foo_main"), std::string("64 bytes"), std::string("aarch64-linux-gnu"), std::string("x86-64-v2"),
        bundle.manifest().slices[3].hash.short_hex(), fmt::format("{} bytes", bundle.bytes().size())})
    EXPECT_THAT(text, HasSubstr(part));
}

TEST(Inspect, programs_get_one_json_object) {
  const auto bundle = example();
  const auto json = nlohmann::json::parse(describe_json(bundle));
  EXPECT_EQ(json["name"], "foo");
  EXPECT_EQ(json["content_id"], bundle.id().hex());
  EXPECT_EQ(json["bytes"], bundle.bytes().size());
  EXPECT_EQ(json["payload_alignment_bytes"], 64);
  EXPECT_EQ(json["dependencies"], nlohmann::json({"libm.so.6"}));
  EXPECT_EQ(json["undefined"], nlohmann::json({"sin", "tc_reply"}));
  ASSERT_EQ(json["slices"].size(), 4u);
  EXPECT_EQ(json["slices"][1]["form"], "object");
  EXPECT_EQ(json["slices"][1]["stored_bytes"], bundle.manifest().slices[1].stored_size);
}

TEST(Inspect, concurrent_code_is_shown) {
  const std::string main = "void foo_main(void *p, size_t n, void *t) { (void)t; tc_reply(p, n); }\n";
  const auto ordinary = c_file("foo", main).bundle();
  EXPECT_THAT(describe(ordinary), Not(HasSubstr("concurrent")));
  EXPECT_EQ(nlohmann::json::parse(describe_json(ordinary))["concurrent"], false);
  const auto concurrent = c_file("foo", "TC_CONCURRENT;\n" + main).bundle();
  EXPECT_THAT(describe(concurrent), HasSubstr("\nconcurrent    yes"));
  EXPECT_EQ(nlohmann::json::parse(describe_json(concurrent))["concurrent"], true);
}

TEST(Inspect, a_slice_that_did_not_travel_is_marked) {
  const auto whole = example();
  const auto bytes = whole.bytes_for(1);
  const auto part = Bundle::read_carried(bytes, 1, whole.id());
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_THAT(describe(*part), HasSubstr("(not here)"));
  EXPECT_EQ(nlohmann::json::parse(describe_json(*part))["slices"][2]["present"], false);
}

}  // namespace
}  // namespace tc::toolchain
