// SPDX-License-Identifier: Apache-2.0
//
// What a node tells a peer that asks about it, and what becomes of a peer that does not keep to the rules of asking.
#include "node/statistics.h"

#include "node/testing/hostile.h"
#include "node/testing/keyring_kit.h"

namespace tc::node::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using wire::Kind;

Bytes answer_of(const wire::NodeReport& report) { return wire::encode_statistics_answer({.report = report}); }

TEST(Statistics, have_names_that_an_answer_can_carry) {
  for (const auto& known : statistics()) {
    wire::NodeReport report;
    report.numbers = {{known.name, 1}};
    EXPECT_TRUE(wire::decode_statistics_answer(answer_of(report))) << known.name;
  }
}

TEST(Statistics, are_a_line_each_behind_what_the_node_says_of_itself) {
  wire::NodeReport report{.name = "a node",
                          .version = "1.2.3",
                          .running = "tsi",
                          .node_id = 7,
                          .uptime_ns = 5,
                          .is_draining = true,
                          .numbers = {{"executed", 9}}};
  EXPECT_EQ(lines_of(report),
            "name a node\nversion 1.2.3\nid 7\nuptime-ns 5\nrunning tsi\ndraining 1\nstat executed 9\n");
  auto busy = report;
  wire::Times times;
  times.add(400, 2);
  busy.failures = {{"denied", 3}};
  busy.times = {{"load", times}};
  busy.ifuncs = {{"two words", 4, 5, times, {}}};
  busy.links = {{"node 1 (a node)", "shm", 6, 7, 8, 9}};
  EXPECT_EQ(lines_of(busy).substr(lines_of(report).size()),
            "failure denied 3\n"
            "time load 400,2,0,0,0,0,0,0,0,0,0,0,0,0,0\n"
            "ifunc 4 5 400,2,0,0,0,0,0,0,0,0,0,0,0,0,0 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0 two words\n"
            "link shm 6 7 8 9 node 1 (a node)\n");
  report.running.clear();
  report.node_id = Identity::no_id;
  EXPECT_EQ(lines_of(report), "name a node\nversion 1.2.3\nuptime-ns 5\ndraining 1\nstat executed 9\n");
}

// ---- What ifuncs do

class Uses : public ::testing::Test {
 protected:
  void call(const Bundle& bundle, std::string_view payload = "x") {
    const Background running(*target);
    last = test::call(*client, *test::connect(*client, "n1"), *message(*client, bundle, payload));
  }
  wire::IfuncReport use(std::string_view name) {
    for (const auto& one : target->report().ifuncs)
      if (one.name == name) return one;
    return {};
  }

  Net net;
  std::unique_ptr<Node> target = net.make(1), client = net.make(2);
  Bundle echo = load_bundle("echo");
  std::shared_ptr<Future> last;
};

TEST_F(Uses, calls_and_failures_are_counted_by_the_name_of_the_ifunc) {
  EXPECT_TRUE(target->report().ifuncs.empty());
  for (int i = 0; i < 3; ++i) call(echo);
  for (int i = 0; i < 2; ++i) call(load_bundle("refuse"));
  EXPECT_EQ(use("echo").calls, 3u);
  EXPECT_EQ(use("echo").failures, 0u);
  EXPECT_EQ(use("refuse").calls, 2u);
  EXPECT_EQ(use("refuse").failures, 2u);
  EXPECT_EQ(target->stat("failures").value(), 2u);
  EXPECT_THAT(lines_of(target->report()), HasSubstr("\nfailure code 2\n"));
}

TEST_F(Uses, what_an_ifunc_did_is_not_forgotten_when_its_code_is_evicted_and_comes_again) {
  for (uint64_t calls = 1; calls <= 3; ++calls) {
    call(echo);
    EXPECT_EQ(use("echo").calls, calls);
    target->store().evict(echo.id());
    EXPECT_EQ(use("echo").calls, calls);
  }
}

TEST_F(Uses, other_code_of_the_same_name_counts_with_it) {
  call(echo);
  call(renamed(load_bundle("refuse"), "echo"));
  EXPECT_EQ(use("echo").calls, 2u);
  EXPECT_EQ(use("echo").failures, 1u);
}

TEST_F(Uses, names_beyond_the_limit_share_one) {
  for (size_t i = 0; i < IfuncUses::most_names + 3; ++i) call(renamed(echo, fmt::format("number_{}", i)));
  const auto ifuncs = target->report().ifuncs;
  EXPECT_EQ(ifuncs.size(), wire::most_ifuncs);
  EXPECT_EQ(use("number_0").calls, 1u);
  EXPECT_EQ(use("other").calls, 3u);
  uint64_t calls = 0;
  for (const auto& one : ifuncs) calls += one.calls;
  EXPECT_EQ(calls, target->executed());
}

TEST_F(Uses, calls_that_come_one_by_one_are_measured_now_and_then) {
  const Background running(*target);
  auto* const link = test::connect(*client, "n1");
  const auto one = message(*client, echo);
  for (int i = 0; i < 400; ++i) ASSERT_EQ(test::call(*client, *link, *one)->status, TC_OK);
  const auto asked = client->ask_statistics(*link, 0).value();
  ASSERT_TRUE(client->poll_until(Deadline::after_ms(60'000), [&] { return asked->ready.load(); }));
  const auto text = text_of(*asked);
  const auto line = text.substr(text.find("\nifunc 400 0 ") + 1);
  ASSERT_TRUE(line.starts_with("ifunc 400 0 ")) << text;
  EXPECT_FALSE(line.starts_with("ifunc 400 0 0,")) << "the sum of what was measured";
  EXPECT_THAT(text, HasSubstr("\nlink simulated 400 "));
}

TEST(UsesOfOneNode, calls_of_a_node_to_itself_count) {
  Cluster cluster(1);
  const auto client = cluster.net.make(9);
  cluster.start();
  EXPECT_EQ(test::call(*client, *test::connect(*client, "n0"), *travel(*client, 3))->status, TC_OK);
  cluster.stop();
  const auto ifuncs = cluster.nodes[0]->report().ifuncs;
  ASSERT_EQ(ifuncs.size(), 1u);
  EXPECT_EQ(ifuncs[0].name, "travel");
  EXPECT_EQ(ifuncs[0].calls, 4u);
}

TEST_F(Uses, the_time_of_a_load_is_told_for_never_seen_code_alone) {
  call(echo);
  call(echo);
  const auto report = target->report();
  ASSERT_EQ(report.times.size(), 2u);
  EXPECT_EQ(report.times[0].first, "load");
  EXPECT_EQ(report.times[0].second.count(), 1u);
  EXPECT_EQ(report.times[1].first, "handshake");
  EXPECT_EQ(report.times[1].second.count(), 0u);
}

TEST_F(Uses, bytes_of_links_that_have_ended_stay_in_the_sum) {
  call(echo, std::string(1000, 'x'));
  const auto received = target->stat("received-bytes").value(), sent = target->stat("sent-bytes").value();
  EXPECT_GT(received, 1000u);
  EXPECT_GT(sent, 1000u);
  const auto links = target->report().links;
  ASSERT_EQ(links.size(), 1u);
  EXPECT_EQ(links[0].calls, 1u);
  EXPECT_EQ(links[0].received_bytes, received);
  EXPECT_EQ(links[0].sent_bytes, sent);
  client.reset();
  ASSERT_TRUE(run_until({target.get()}, [&] { return target->stat("links").value() == 0; }));
  EXPECT_GE(target->stat("received-bytes").value(), received);
  EXPECT_GE(target->stat("sent-bytes").value(), sent);
  EXPECT_TRUE(target->report().links.empty());
}

// ---- Between two nodes

class Asking : public Hostile {
 protected:
  std::shared_ptr<Future> ask(uint32_t answer_ms = 20'000) {
    auto future = client->ask_statistics(*good_link, answer_ms);
    EXPECT_TRUE(future) << future.error().message;
    return *future;
  }
};

TEST_F(Asking, a_peer_tells_which_node_it_is_and_all_of_its_statistics) {
  const auto future = ask();
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_OK) << future->message;
  const auto text = text_of(*future);
  EXPECT_THAT(text, HasSubstr("name test1\nversion "));
  EXPECT_THAT(text, HasSubstr("\nid 1\nuptime-ns "));
  EXPECT_THAT(text, HasSubstr("\ndraining 0\n"));
  EXPECT_THAT(text, HasSubstr("\nstat links 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\nrunning ")));
  for (const auto& known : statistics()) EXPECT_THAT(text, HasSubstr(fmt::format("\nstat {} ", known.name)));
}

TEST_F(Asking, one_question_is_open_at_a_time_also_when_nobody_waits_for_its_answer_any_more) {
  const auto first = ask();
  auto second = client->ask_statistics(*good_link, 20'000);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, TC_ERR_BUSY);
  EXPECT_THAT(second.error().message, HasSubstr("node 1 (test1) has not answered the last question"));
  client->forget(*first);
  EXPECT_EQ(client->ask_statistics(*good_link, 20'000).error().code, TC_ERR_BUSY);
  EXPECT_TRUE(run_until([&] { return client->stat("late-answers") == 1u; }));
  const auto third = ask();
  EXPECT_TRUE(run_until([&] { return third->ready.load(); }));
  EXPECT_EQ(third->status, TC_OK) << third->message;
}

TEST_F(Asking, an_answer_that_does_not_come_is_a_timeout_that_names_the_node) {
  const auto future = ask(50);
  ASSERT_TRUE(test::run_until({client.get()}, [&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_TIMEOUT);
  EXPECT_EQ(future->message, "the statistics of node 1 (test1): no answer within the deadline");
  EXPECT_TRUE(run_until([&] { return client->stat("late-answers") == 1u; }));
}

TEST_F(Asking, a_peer_that_is_lost_answers_nobody) {
  join();
  Link* link = nullptr;
  target->links().each([&](Link& one) { link = one.peer().name == "raw" ? &one : link; });
  ASSERT_NE(link, nullptr);
  const auto future = target->ask_statistics(*link, 0).value();
  peer.vanish();
  EXPECT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED) << future->message;
}

TEST_F(WithKeyring, statistics_are_told_to_a_peer_that_may_run_nothing) {
  const Person ana("ana");
  start(ana.line("run=none"));
  const auto node = peer(2, ana);
  auto* const link = connect(*node, "n1");
  const auto future = node->ask_statistics(*link, 20'000).value();
  node->poll_until(Deadline::after_ms(20'000), [&] { return future->ready.load(); });
  EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_THAT(text_of(*future), HasSubstr("stat executed 0\n"));
}

TEST_F(WithKeyring, statistics_are_not_told_to_a_node_that_was_connected_to_and_may_not_connect_itself) {
  const Person ana("ana"), eve("eve");
  start(ana.line(), [](Config& config) { config.first_contact = FirstContact::remember; });
  RawPeer stranger(net.network);
  net.network.make_foreign("n3", eve.public_key());
  stranger.listen("n3");
  running.reset();
  auto* const link = target->links().find_or_reach("n3").value();
  ASSERT_TRUE(tc::test::run_until([&] { return link->is_ready(); }, [&] { stranger.progress(), target->poll(); }));
  ASSERT_TRUE(stranger.send(Kind::statistics, wire::statistics_question, {}));
  ASSERT_TRUE(tc::test::run_until([&] { return stranger.find(Kind::statistics) != nullptr; },
                                  [&] { stranger.progress(), target->poll(); }));
  const auto answer = wire::decode_statistics_answer(stranger.find(Kind::statistics)->body).value();
  EXPECT_EQ(answer.status, TC_ERR_DENIED);
  EXPECT_THAT(answer.message, HasSubstr("may not connect here, and is told nothing about this node"));
  EXPECT_TRUE(answer.report.name.empty());
}

// ---- A peer that breaks the rules

TEST_F(Hostile, a_question_about_a_node_is_answered_without_running_anything) {
  join();
  ASSERT_TRUE(peer.send(Kind::statistics, wire::statistics_question, {}));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::statistics, wire::statistics_answer) != nullptr; }));
  const auto answer = wire::decode_statistics_answer(peer.find(Kind::statistics)->body).value();
  EXPECT_EQ(answer.report.name, "test1");
  EXPECT_EQ(answer.report.numbers.size(), statistics().size());
  EXPECT_EQ(target->executed(), 0u);
  expect_still_linked();
}

TEST_F(Hostile, a_question_about_a_node_that_has_a_body_is_refused) {
  join();
  peer.send(Kind::statistics, wire::statistics_question, Bytes(1));
  expect_dropped("statistics question: it has 1 bytes when it has no body");
}

TEST_F(Hostile, a_statistics_frame_of_another_type_is_refused) {
  join();
  peer.send(Kind::statistics, 2, {});
  expect_dropped("a statistics frame is of type 2 when 0 and 1 are known");
}

TEST_F(Hostile, statistics_that_nobody_asked_for_are_refused) {
  join();
  peer.send(Kind::statistics, wire::statistics_answer,
            answer_of({.name = "raw", .version = "1", .running = "", .numbers = {}}));
  expect_dropped("it tells its statistics when nobody asked for them");
}

TEST_F(Hostile, statistics_that_make_no_sense_are_refused_and_fail_the_question) {
  join();
  Link* link = nullptr;
  target->links().each([&](Link& one) { link = one.peer().name == "raw" ? &one : link; });
  ASSERT_NE(link, nullptr);
  const auto future = target->ask_statistics(*link, 0).value();
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::statistics) != nullptr; }));
  peer.send(Kind::statistics, wire::statistics_answer, Bytes(9));
  expect_dropped("statistics answer");
  EXPECT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_MALFORMED) << future->message;
}

TEST_F(Hostile, whoever_asks_about_a_node_and_reads_no_answer_is_dropped_before_many_wait) {
  join();
  peer.set_reading(false);
  uint32_t asked = 0;
  const auto ask = [&] {
    if (peer.send(Kind::statistics, wire::statistics_question, {})) ++asked;
    peer.flush();
    target->poll();
    return links() == 1;
  };
  EXPECT_TRUE(tc::test::run_until(ask, [] {}));
  EXPECT_LT(asked, 10'000u) << "what the stream holds, and one more";
  peer.set_reading(true);
}

}  // namespace
}  // namespace tc::node::test
