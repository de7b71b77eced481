// SPDX-License-Identifier: Apache-2.0
//
// How calls between two nodes fail, and how their caller is told.
#include "node/testing/node_test_kit.h"

namespace tc::node {
namespace {

using test::Background;
using test::call;
using test::connect;
using test::message;

TEST(Node, an_ifunc_that_fails_tells_its_caller_who_where_and_why) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  const auto answer = call(*source, *link, *message(*source, "refuse", ""));
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, 42);
  EXPECT_EQ(answer->message, "node 1 (test1): ifunc 'refuse' failed with code 42: it is Sunday");
}

TEST(Node, a_failure_that_nobody_waits_for_is_told_by_the_next_flush) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  const auto refuse = message(*source, "refuse", "");
  ASSERT_TRUE(source->send(*link, *refuse, false, Deadline::after_ms(1000)));
  ASSERT_TRUE(source->send(*link, *refuse, false, Deadline::after_ms(1000)));
  const auto flushed = link->flush(Deadline::after_ms(5000));
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, TC_ERR_IFUNC);
  EXPECT_EQ(flushed.error().message,
            "node 1 (test1): ifunc 'refuse' failed with code 42: it is Sunday (and 1 more calls failed)");
  EXPECT_TRUE(link->flush(Deadline::after_ms(5000))) << "a failure is told once";
}

TEST(Node, a_missing_symbol_is_named_to_the_sender_and_its_export_cures_it) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  {
    const Background running(*target);
    auto* link = connect(*source, "n1");
    const auto answer = call(*source, *link, *message(*source, "exported", ""));
    EXPECT_EQ(answer->status, TC_ERR_UNRESOLVED);
    EXPECT_THAT(answer->message, testing::AllOf(testing::HasSubstr("node 1 (test1)"), testing::HasSubstr("exported"),
                                                testing::HasSubstr("application_answer")));
  }
  target->policy().export_symbol("application_answer", reinterpret_cast<void*>(+[]() -> uint64_t { return 4711; }));
  const Background running(*target);
  auto* link = connect(*source, "n1");
  const auto answer = call(*source, *link, *message(*source, "exported", ""));
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  uint64_t number = 0;
  ASSERT_EQ(answer->bytes.size(), sizeof number);
  std::memcpy(&number, answer->bytes.data(), sizeof number);
  EXPECT_EQ(number, 4711u);
}

TEST(Node, calls_after_refused_code_are_refused_with_the_same_reason) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  const auto exported = message(*source, "exported", "");
  const auto first = call(*source, *link, *exported);
  const auto second = call(*source, *link, *exported);
  EXPECT_EQ(second->status, TC_ERR_UNRESOLVED);
  EXPECT_EQ(second->message, first->message);
}

TEST(Node, a_call_to_a_target_that_vanishes_fails_with_its_name) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  Link* link = nullptr;
  {
    const Background running(*target);
    link = connect(*source, "n1");
  }
  auto future = source->call(*link, *message(*source, "echo", "hello"), 0, Deadline::after_ms(1000)).value();
  source->poll();
  target.reset();
  EXPECT_TRUE(source->poll_until(Deadline::after_ms(5000), [&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
  EXPECT_THAT(future->message, testing::HasSubstr("node 1 (test1)"));
  EXPECT_FALSE(source->send(*link, *message(*source, "echo", "hello"), false, Deadline::after_ms(10)));
}

TEST(Node, a_call_that_nobody_answers_ends_at_its_deadline) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  Link* link = nullptr;
  {
    const Background running(*target);
    link = connect(*source, "n1");
  }
  const auto future = call(*source, *link, *message(*source, "echo", "hello"), 50);
  EXPECT_EQ(future->status, TC_ERR_TIMEOUT);
  EXPECT_THAT(future->message, testing::HasSubstr("ifunc 'echo' on node 1 (test1)"));
}

TEST(Node, a_bundle_without_code_for_the_target_is_refused_by_name) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  Manifest manifest;
  manifest.name = "elsewhere";
  manifest.entries = entry_main;
  Slice slice;
  slice.triple = TargetTriple::parse("sparc64-linux-gnu").value();
  slice.unpacked_size = 1;
  manifest.slices.push_back(slice);
  auto ifunc = source->register_bundle(Bundle::pack(manifest, {Bytes(1)}).value()).value();
  const auto nothing = source::Message::create(ifunc, nullptr, 0, 100).value();
  const auto sent = source->send(*link, *nothing, false, Deadline::after_ms(1000));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, TC_ERR_NO_SLICE);
  EXPECT_THAT(sent.error().message,
              testing::AllOf(testing::HasSubstr("elsewhere"), testing::HasSubstr("node 1 (test1)")));
}

TEST(Node, closing_a_node_fails_the_calls_that_wait) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  Link* link = nullptr;
  {
    const Background running(*target);
    link = connect(*source, "n1");
  }
  const auto future = source->call(*link, *message(*source, "echo", "x"), 0, Deadline::after_ms(1000)).value();
  source.reset();
  EXPECT_TRUE(future->ready.load());
  EXPECT_EQ(future->status, TC_ERR_CLOSED);
}

TEST(Node, connecting_to_nobody_is_an_error_within_the_deadline) {
  test::Net net;
  auto source = net.make(2);
  const auto link = source->connect("nobody", Deadline::after_ms(200));
  ASSERT_FALSE(link);
  EXPECT_THAT(link.error().message, testing::HasSubstr("nobody"));
}

}  // namespace
}  // namespace tc::node
