// SPDX-License-Identifier: Apache-2.0
//
// Code that is forwarded from one kind of processor to another.
#include "node/testing/slices.h"

namespace tc::node {
namespace {

using test::arm;
using test::for_three;
using test::native;
using test::riscv;
using test::Slices;
using testing::HasSubstr;

TEST_F(Slices, code_forwards_itself_round_a_ring_of_three_kinds_of_processors) {
  make_nodes({native, arm, riscv});
  auto client = net.make(99);
  start();
  auto* link = test::connect(*client, "n0");
  for (int lap = 0; lap < 3; ++lap) {
    const auto answer = test::call(*client, *link, *travel(*client, for_three("travel"), 8));
    ASSERT_EQ(answer->status, TC_OK) << answer->message;
    const auto result = result_of(*answer);
    ASSERT_EQ(result.visited, 9u);
    for (uint32_t i = 0; i < 9; ++i) EXPECT_EQ(result.nodes[i], i % 3);
  }
  stop();
  EXPECT_EQ(asked(*nodes[0]), 2u) << "for aarch64, and for node 1 for riscv64; never again";
  EXPECT_EQ(asked(*nodes[1]), 2u) << "for riscv64, and for node 2 for x86-64";
  EXPECT_EQ(asked(*nodes[2]), 1u) << "for x86-64";
}

TEST_F(Slices, a_question_goes_back_along_the_way_that_the_code_came) {
  make_nodes({arm, arm, arm, riscv});
  auto client = net.make(99);
  start();
  const auto answer = test::call(*client, *test::connect(*client, "n0"), *travel(*client, for_three("travel"), 3));
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  EXPECT_EQ(result_of(*answer).visited, 4u);
  stop();
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(asked(*nodes[i]), 1u) << "node " << i;
}

TEST_F(Slices, many_calls_that_wait_for_one_slice_arrive_in_order_after_one_question) {
  make_nodes({arm, riscv});
  auto client = net.make(99);
  start();
  auto* link = test::connect(*client, "n0");
  std::vector<std::shared_ptr<Future>> calls;
  const auto message = travel(*client, for_three("travel"), 1);
  for (int i = 0; i < 50; ++i) calls.push_back(client->call(*link, *message, 5000, Deadline::after_ms(5000)).value());
  for (auto& call : calls) {
    client->poll_until(Deadline::after_ms(6000), [&] { return call->ready.load(); });
    EXPECT_EQ(call->status, TC_OK) << call->message;
  }
  stop();
  EXPECT_EQ(asked(*nodes[0]), 1u);
}

TEST_F(Slices, calls_of_new_code_wait_for_its_slice_on_links_that_are_up_already) {
  make_nodes({arm, riscv});
  auto client = net.make(99);
  start();
  auto* link = test::connect(*client, "n0");
  EXPECT_EQ(test::call(*client, *link, *travel(*client, for_three("travel"), 1))->status, TC_OK);
  const auto message = travel(*client, test::renamed(for_three("travel"), "other"), 1);
  std::vector<std::shared_ptr<Future>> calls;
  for (int i = 0; i < 5; ++i) calls.push_back(client->call(*link, *message, 5000, Deadline::after_ms(5000)).value());
  for (auto& call : calls) {
    client->poll_until(Deadline::after_ms(6000), [&] { return call->ready.load(); });
    EXPECT_EQ(call->status, TC_OK) << call->message;
    EXPECT_EQ(result_of(*call).visited, 2u);
  }
  stop();
  EXPECT_EQ(asked(*nodes[0]), 2u) << "once for each code";
}

TEST_F(Slices, a_node_that_registered_the_ifunc_itself_asks_nobody) {
  make_nodes({arm, riscv});
  ASSERT_TRUE(nodes[0]->register_bundle(for_three("travel")));
  auto client = net.make(99);
  start();
  const auto answer = test::call(*client, *test::connect(*client, "n0"), *travel(*client, for_three("travel"), 1));
  EXPECT_EQ(answer->status, TC_OK) << answer->message;
  stop();
  EXPECT_EQ(asked(*nodes[0]), 0u);
}

TEST_F(Slices, a_kind_that_the_ifunc_was_never_built_for_is_refused_by_name_without_a_question) {
  make_nodes({arm, riscv});
  auto client = net.make(99);
  start();
  const auto answer =
      test::call(*client, *test::connect(*client, "n0"), *travel(*client, for_three("travel", riscv), 1));
  EXPECT_EQ(answer->status, TC_ERR_NO_SLICE);
  EXPECT_THAT(answer->message, HasSubstr("build it with --target riscv64-unknown-linux-gnu"));
  stop();
  EXPECT_EQ(asked(*nodes[0]), 0u);
}

TEST_F(Slices, code_whose_sender_has_left_cannot_go_on_and_says_so_at_once) {
  make_nodes({arm, riscv});
  auto first = net.make(98);
  auto second = net.make(99);
  unsigned char text[16] = {};
  nodes[0]->expose("text", text, sizeof text);
  start();
  const auto append = for_three("append");
  {
    char payload = 'x';
    const auto message = source::Message::create(first->register_bundle(append).value(), &payload, 1, 1 << 20).value();
    ASSERT_EQ(test::call(*first, *test::connect(*first, "n0"), *message)->status, TC_OK);
    first.reset();
  }
  char payload = 'y';
  const auto spread =
      source::Message::create(second->register_bundle(for_three("spread")).value(), &payload, 1, 1 << 20).value();
  auto* link = test::connect(*second, "n0");
  auto answer = test::call(*second, *link, *spread);
  // The link to node 1 may have to greet first; then the refusal is of the injected call alone.
  const auto deadline = Deadline::after_ms(10'000);
  while (answer->status == TC_OK && !deadline.passed()) answer = test::call(*second, *link, *spread);
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_NO_SLICE);
}

}  // namespace
}  // namespace tc::node
