// SPDX-License-Identifier: Apache-2.0
//
// Payloads between two nodes: large ones, aligned ones, and those that a function of the ifunc builds.
#include "node/testing/node_test_kit.h"

namespace tc::node {
namespace {

using test::Background;
using test::call;
using test::connect;
using test::message;
using test::text_of;

TEST(Node, payloads_larger_than_a_batch_travel_in_fragments) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  for (const size_t size : {16u * 1024, 100'000u, 3'000'001u}) {
    std::string large(size, '?');
    for (size_t i = 0; i < size; ++i) large[i] = static_cast<char>('a' + i % 23);
    EXPECT_EQ(text_of(*call(*source, *link, *message(*source, "echo", large))), large);
  }
}

TEST(Node, a_payload_over_the_targets_limit_is_refused_at_the_source_with_both_numbers) {
  test::Net net;
  auto target = net.make(1, [](Config& c) { c.max_message = 4096; });
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  const auto sent =
      source->send(*link, *message(*source, "echo", std::string(10'000, 'x')), false, Deadline::after_ms(1000));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, TC_ERR_TOO_LARGE);
  EXPECT_THAT(sent.error().message, testing::HasSubstr("4096"));
}

TEST(Node, payloads_lie_at_the_alignment_that_the_ifunc_asks_for) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  for (const size_t size : {1u, 17u, 5000u, 100'000u}) {
    const auto answer = call(*source, *link, *message(*source, "aligned", std::string(size, 'x')));
    uint64_t offset = 1;
    ASSERT_EQ(answer->bytes.size(), sizeof offset) << answer->message;
    std::memcpy(&offset, answer->bytes.data(), sizeof offset);
    EXPECT_EQ(offset, 0u) << size;
  }
}

TEST(Node, payload_functions_of_the_ifunc_run_at_the_source) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  EXPECT_EQ(text_of(*call(*source, *link, *message(*source, "built", "abc"))), "abcabc");
}

}  // namespace
}  // namespace tc::node
