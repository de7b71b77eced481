// SPDX-License-Identifier: Apache-2.0
//
// Calls between nodes of one process, over a simulated network.
#include "node/node.h"

#include <gtest/gtest.h>

#include <set>

#include "node/refusals.h"
#include "node/testing/node_test_kit.h"
#include "threechains/ifunc.h"

namespace tc::node::test {
namespace {

TEST(Node, an_ifunc_that_the_target_never_saw_runs_there_and_answers) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  const auto answer = call(*source, *link, *message(*source, "echo", "over there"));
  EXPECT_EQ(answer->status, TC_OK) << answer->message;
  EXPECT_EQ(text_of(*answer), "over there");
}

// An event loop would otherwise wake up all the time from then on.
TEST(Node, a_call_that_has_its_answer_leaves_no_deadline_to_wait_for) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  auto* const link = [&] {
    const Background running(*target);
    auto* const connected = connect(*source, "n1");
    EXPECT_EQ(call(*source, *connected, *message(*source, "echo", "x"), 30'000)->status, TC_OK);
    return connected;
  }();
  ASSERT_FALSE(link->is_lost());
  let_pass(std::chrono::seconds(31));
  auto deadline = Deadline::never();
  ASSERT_TRUE(run_until({}, [&] { return source->arm(deadline = Deadline::never()); }));
  EXPECT_GT(deadline.at_ns(), now_ns());
}

TEST(Node, code_travels_once_and_later_calls_go_by_number) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  uint64_t counter = 0;
  target->executor().target_args = &counter;
  {
    const Background running(*target);
    auto* link = connect(*source, "n1");
    const auto tsi = message(*source, "tsi", "x");
    EXPECT_FALSE(link->sender().try_send(*tsi)) << "the first one carries code";
    ASSERT_TRUE(source->send(*link, *tsi, false, Deadline::after_ms(1000)));
    for (int i = 0; i < 1000; ++i) {
      if (!link->sender().try_send(*tsi)) {
        ASSERT_TRUE(source->send(*link, *tsi, false, Deadline::after_ms(1000)));
      }
    }
    EXPECT_TRUE(link->flush(Deadline::after_ms(5000)));
  }
  EXPECT_EQ(counter, 1001u);
  EXPECT_EQ(target->stat("code-loads"), 1u);
  EXPECT_EQ(target->stat("executed"), 1001u);
}

TEST(Node, messages_name_a_peer_by_its_number_or_by_its_address_or_as_a_client) {
  Net net;
  const auto server = net.make(0, [](Config& config) { config.listen = "server"; });
  const auto client = net.make(0, [](Config& config) { config.listen = "", config.name = "visitor"; });
  const auto numbered = net.make(7);
  {
    const Background running(*server);
    EXPECT_EQ(connect(*client, "server")->peer_label(), "node at server (test0)");
    EXPECT_EQ(connect(*numbered, "server")->peer_label(), "node at server (test0)");
  }
  std::set<std::string> labels;
  server->links().each([&](Link& link) { labels.insert(link.peer_label()); });
  EXPECT_THAT(labels, testing::UnorderedElementsAre("client visitor", "node 7 (test7)"));
}

TEST(Node, named_data_is_what_was_exposed_last_however_often_it_was_asked_for) {
  Net net;
  auto node = net.make(1), peer = net.make(2);
  const Background running(*peer);
  node->executor().running().link = test::connect(*node, "n2");  // as if it called
  const target::Executor::Scope scope(node->executor());
  int one = 1, two = 2, three = 3;
  const std::string long_name(40, 'x');
  const auto found = [](const std::string& name) {
    size_t size = 0;
    auto* const data = static_cast<int*>(tc_data(name.c_str(), &size));
    EXPECT_EQ(size, data != nullptr ? sizeof(int) * static_cast<size_t>(*data) : 0u);
    return data;
  };
  EXPECT_EQ(found("a"), nullptr);
  node->expose("a", &one, sizeof one);
  node->expose("ab", &two, 2 * sizeof two);
  node->expose(long_name, &three, 3 * sizeof three);
  for (int i = 0; i < 2; ++i) {
    for (int again = 0; again < 2; ++again) EXPECT_EQ(found("a"), &one);
    for (int again = 0; again < 2; ++again) EXPECT_EQ(found("ab"), &two);
    for (int again = 0; again < 2; ++again) EXPECT_EQ(found(long_name), &three);
    EXPECT_EQ(found(long_name.substr(1)), nullptr);
    EXPECT_EQ(found("abc"), nullptr);
    EXPECT_EQ(found(""), nullptr);
  }
  EXPECT_EQ(found("a"), &one);
  int other = 1;
  node->expose("a", &other, sizeof other);
  EXPECT_EQ(found("a"), &other);
  EXPECT_EQ(tc_data("a", nullptr), &other);
  EXPECT_EQ(tc_data(nullptr, nullptr), nullptr);
  node->expose("a", nullptr, 0);
  EXPECT_EQ(found("a"), nullptr);
  EXPECT_EQ(found("ab"), &two);
}

TEST(Node, messages_handed_over_together_run_in_order_and_what_has_no_room_is_not_taken) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  std::vector<unsigned char> text(255);
  target->expose("text", text.data(), text.size());
  std::vector<std::unique_ptr<source::Message>> letters;
  std::vector<source::Message*> handles;
  std::string expected;
  for (char c = 'a'; c <= 'z'; ++c) {
    letters.push_back(message(*source, "append", std::string(static_cast<size_t>(c - 'a') * 3 + 1, c)));
    handles.push_back(letters.back().get());
    expected += c;
  }
  {
    const Background running(*target);
    auto* link = connect(*source, "n1");
    EXPECT_EQ(link->sender().try_send(handles.data(), handles.size()), 0u) << "the first one carries code";
    ASSERT_TRUE(source->send(*link, *letters[0], false, Deadline::after_ms(1000)));
    ASSERT_TRUE(link->flush(Deadline::after_ms(5000)));
    EXPECT_EQ(link->sender().try_send(handles.data() + 1, 25), 25u);
    ASSERT_TRUE(link->flush(Deadline::after_ms(5000)));
    const auto echo = message(*source, "echo", "x");
    ASSERT_TRUE(source->send(*link, *echo, false, Deadline::after_ms(1000)));
    const std::vector<source::Message*> too_many(100'000, echo.get());
    EXPECT_LT(link->sender().try_send(too_many.data(), too_many.size()), too_many.size());
  }
  EXPECT_EQ(std::string(reinterpret_cast<char*>(text.data()) + 1, 26), expected);
}

TEST(Node, evicted_code_is_asked_for_again_and_calls_keep_their_order) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  unsigned char text[64] = {};
  target->expose("text", text, sizeof text);
  const auto append_id = load_bundle("append").id();
  std::unique_ptr<Background> running = std::make_unique<Background>(*target);
  auto* link = connect(*source, "n1");
  auto letter = [&](char c) { return message(*source, "append", std::string_view(&c, 1)); };
  ASSERT_TRUE(source->send(*link, *letter('a'), false, Deadline::after_ms(1000)));
  ASSERT_TRUE(link->flush(Deadline::after_ms(5000)));
  running.reset();
  target->store().evict(append_id);
  running = std::make_unique<Background>(*target);
  for (const char c : {'b', 'c', 'd'}) ASSERT_TRUE(source->send(*link, *letter(c), false, Deadline::after_ms(1000)));
  const auto last = call(*source, *link, *message(*source, "echo", "behind them"));
  EXPECT_EQ(text_of(*last), "behind them");
  running.reset();
  EXPECT_EQ(std::string(reinterpret_cast<char*>(text) + 1, text[0]), "abcd");
  EXPECT_EQ(target->stat("needs"), 1u);
}

TEST(Node, a_restarted_target_gets_the_code_again_over_a_new_link) {
  Net net;
  auto source = net.make(2);
  for (int life = 0; life < 2; ++life) {
    auto target = net.make(1);
    const Background running(*target);
    auto* link = connect(*source, "n1");
    EXPECT_EQ(text_of(*call(*source, *link, *message(*source, "echo", "again"))), "again");
  }
}

TEST(Node, a_stopped_target_accepts_what_there_is_room_for_and_then_the_sender_is_told) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  uint64_t counter = 0;
  target->executor().target_args = &counter;
  Link* link = nullptr;
  {
    const Background running(*target);
    link = connect(*source, "n1");
  }
  const auto tsi = message(*source, "tsi", std::string(1000, 'x'));
  uint64_t accepted = 0;
  Status refused;
  while (refused && accepted < 100'000)
    if (refused = source->send(*link, *tsi, false, Deadline::after_ms(5)); refused) ++accepted;
  ASSERT_FALSE(refused) << "a window has an end";
  EXPECT_EQ(refused.error().code, TC_ERR_BUSY);
  {
    const Background running(*target);
    EXPECT_TRUE(link->flush(Deadline::after_ms(10000)));
  }
  EXPECT_EQ(counter, accepted) << "what was accepted ran, once";
}

// ---- Payloads: large ones, aligned ones, and those that a function of the ifunc builds

TEST(Node, payloads_larger_than_a_batch_travel_in_fragments) {
  Net net;
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
  Net net;
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
  Net net;
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
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  EXPECT_EQ(text_of(*call(*source, *link, *message(*source, "built", "abc"))), "abcabc");
}

// ---- How calls fail, and what their caller is told

TEST(Node, an_ifunc_that_fails_tells_its_caller_who_where_and_why) {
  Net net;
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
  Net net;
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
  Net net;
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
  Net net;
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
  Net net;
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
  Net net;
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
  Net net;
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
  Net net;
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
  Net net;
  auto source = net.make(2);
  const auto link = source->connect("nobody", Deadline::after_ms(200));
  ASSERT_FALSE(link);
  EXPECT_THAT(link.error().message, testing::HasSubstr("nobody"));
}

constexpr uint64_t second = 1'000'000'000;

TEST(Refusals, ten_a_second_are_said_and_the_rest_are_counted) {
  Refusals refusals;
  uint64_t now = 5 * second;
  for (uint32_t i = 0; i < Refusals::lines_a_second; ++i) EXPECT_TRUE(refusals.record(now += 1000));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(refusals.record(now += 1000));
  EXPECT_EQ(refusals.take_unsaid(now), 0u) << "the second is not over";
  EXPECT_EQ(refusals.take_unsaid(now + second), 500u);
  EXPECT_EQ(refusals.take_unsaid(now + second), 0u) << "once";
  EXPECT_TRUE(refusals.record(now + second));
}

// ---- How long a node sleeps when there is nothing to do

// It ended with each housekeeping, a millisecond later, and its caller looked for a while before sleeping again.
TEST(Node, an_idle_wait_sleeps_until_its_deadline) {
  Net net;
  auto node = net.make(1);
  for (int i = 0; i < 3; ++i) {
    for (int polls = 0; polls < 2000; ++polls) node->poll();  // enough for housekeeping
    const auto deadline = Deadline::after_ms(20);
    EXPECT_EQ(node->wait(deadline), 0u);
    EXPECT_TRUE(deadline.passed());
  }
}

// A transport that notes how long it may sleep, and is woken at once.
class Sleepless final : public transport::Transport {
 public:
  explicit Sleepless(std::vector<uint64_t>& sleeps_ns) : sleeps_ns_(sleeps_ns) {}
  Result<std::string> listen(std::string_view address) override { return std::string(address); }
  Result<std::unique_ptr<transport::Connection>> connect(std::string_view, ByteView) override {
    return tc::fail(TC_ERR_UNSUPPORTED, "nobody is there");
  }
  unsigned progress() noexcept override { return 0; }
  void flush() noexcept override {}
  void sleep(Deadline deadline) noexcept override { sleeps_ns_.push_back(deadline.remaining_ns()); }
  void wake() noexcept override {}

 private:
  std::vector<uint64_t>& sleeps_ns_;
};

// A millisecond, before: the system set its timer anew for every message of a crowded machine.
TEST(Node, housekeeping_sets_no_timer_that_is_due_before_the_next_tick) {
  std::vector<uint64_t> sleeps_ns;
  auto config = Config::defaults();
  config.log = "off";
  auto node = Node::create(std::move(config), [&](const Config&, transport::Events&) {
    return Result<std::unique_ptr<transport::Transport>>(std::make_unique<Sleepless>(sleeps_ns));
  });
  ASSERT_TRUE(node) << node.error().message;
  for (int i = 0; i < 10; ++i) (*node)->wait(Deadline::after_ms(10'000));
  EXPECT_EQ(sleeps_ns.size(), 10u);
  EXPECT_THAT(sleeps_ns, ::testing::Each(::testing::Gt(10'000'000u)));
}

}  // namespace
}  // namespace tc::node::test
