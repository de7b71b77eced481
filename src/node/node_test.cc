// SPDX-License-Identifier: Apache-2.0
//
// The link protocol between nodes of one process, over a network that does as it is told.
#include "node/node.h"

#include <set>

#include "node/testing/node_test_kit.h"
#include "threechains/ifunc.h"

namespace tc::node {
namespace {

using test::Background;
using test::call;
using test::connect;
using test::message;
using test::text_of;

TEST(Node, an_ifunc_that_the_target_never_saw_runs_there_and_answers) {
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  const Background running(*target);
  auto* link = connect(*source, "n1");
  const auto answer = call(*source, *link, *message(*source, "echo", "over there"));
  EXPECT_EQ(answer->status, TC_OK) << answer->message;
  EXPECT_EQ(text_of(*answer), "over there");
}

TEST(Node, code_travels_once_and_later_calls_go_by_number) {
  test::Net net;
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
  test::Net net;
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
  test::Net net;
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
  test::Net net;
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
  test::Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  unsigned char text[64] = {};
  target->expose("text", text, sizeof text);
  const auto append_id = test::load_bundle("append").id();
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
  test::Net net;
  auto source = net.make(2);
  for (int life = 0; life < 2; ++life) {
    auto target = net.make(1);
    const Background running(*target);
    auto* link = connect(*source, "n1");
    EXPECT_EQ(text_of(*call(*source, *link, *message(*source, "echo", "again"))), "again");
  }
}

TEST(Node, a_stopped_target_accepts_what_there_is_room_for_and_then_the_sender_is_told) {
  test::Net net;
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

}  // namespace
}  // namespace tc::node
