// SPDX-License-Identifier: Apache-2.0
//
// Nodes whose code runs in cells: which code does, what such a call can do, and what becomes of it when its cell, its code, its
// rights or its node end.
#include "node/testing/cell_kit.h"
#include "node/testing/keyring_kit.h"

namespace tc::node::test {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// n1 isolates all code; n2 calls it. The test drives both.
class IsolatesAll : public ::testing::Test {
 protected:
  std::unique_ptr<Node> make_target(const Net::Adjust& adjust = {}) {
    auto node = net.make(1, [&](Config& config) {
      config.isolate = Isolate::all;
      if (adjust) adjust(config);
    });
    EXPECT_TRUE(gate.expose(*node));
    return node;
  }
  Link* connect(Node& from) {
    const Background running(*target);
    return test::connect(from, "n1");
  }
  std::shared_ptr<Future> send(Node& from, Link& to, const Bundle& bundle, std::string_view payload) {
    return from.call(to, *test::message(from, bundle, payload), 0, Deadline::after_ms(20'000)).value();
  }
  std::shared_ptr<Future> send(const Bundle& bundle, std::string_view payload) {
    return send(*source, *link, bundle, payload);
  }
  bool until(const std::function<bool()>& done) { return run_until({target.get(), source.get()}, done); }
  // Waits until it has ended.
  std::shared_ptr<Future> call(const Bundle& bundle, std::string_view payload) {
    auto future = send(bundle, payload);
    EXPECT_TRUE(until([&] { return future->ready.load(); }));
    return future;
  }
  // Runs until the gate opens.
  std::shared_ptr<Future> send_one_that_stays(std::string_view payload = "stays") {
    const auto before = gate.inside();
    auto future = send(linger, payload);
    EXPECT_TRUE(until([&] { return gate.inside() == before + 1; }));
    return future;
  }
  bool answered(const std::shared_ptr<Future>& future) {
    return until([&] { return future->ready.load(); }) && future->status == TC_OK;
  }
  uint64_t stat(const char* name) { return target->stat(name).value(); }

  Gate gate;
  Net net;
  std::unique_ptr<Node> target = make_target();
  std::unique_ptr<Node> source = net.make(2);
  Link* link = connect(*source);
  const Bundle echo = load_bundle("echo"), linger = load_bundle("linger"), crash = load_bundle("crash"),
               misbehave = load_bundle("misbehave"), append = load_bundle("append");
};

TEST_F(IsolatesAll, a_call_runs_in_another_process_and_answers) {
  EXPECT_EQ(text_of(*call(echo, "hello")), "hello");
  const auto process = process_of(*call(misbehave, ask_for_process()));
  EXPECT_NE(process, ::getpid());
  EXPECT_TRUE(children().contains(process));
  EXPECT_EQ(process_of(*call(misbehave, ask_for_process())), process) << "one cell runs them all";
}

TEST_F(IsolatesAll, a_node_that_sleeps_is_woken_by_what_its_cell_says) {
  const Background running(*target);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(test::call(*source, *link, *message(*source, echo, "x"))->status, TC_OK);
}

TEST_F(IsolatesAll, calls_of_one_link_run_in_their_order_and_a_flush_waits_for_them) {
  const SharedMemory text(64);
  ASSERT_TRUE(text.expose(*target, "text"));
  std::string sent;
  {
    const Background running(*target);
    for (char c = 'a'; c <= 'z'; ++c) {
      sent += c;
      ASSERT_TRUE(source->send(*link, *message(*source, append, std::string(1, c)), false, Deadline::after_ms(20'000)));
    }
    ASSERT_TRUE(link->flush(Deadline::after_ms(60'000)));
  }
  EXPECT_EQ(text.text().substr(1, sent.size()), sent);
  EXPECT_EQ(stat("executed"), sent.size());
  EXPECT_EQ(stat("cell-calls"), sent.size());
}

TEST_F(IsolatesAll, a_megabyte_goes_there_and_back) {
  std::string payload(1 << 20, 'x');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 31 + i / 251);
  EXPECT_EQ(text_of(*call(echo, payload)), payload);
  EXPECT_EQ(text_of(*call(echo, "short")), "short");
}

TEST_F(IsolatesAll, an_answer_is_larger_than_its_call) {
  constexpr size_t size = 5'000'000;
  const auto answer = text_of(*call(misbehave, ask_to(What::produce, {size})));
  ASSERT_EQ(answer.size(), size);
  for (size_t i = 0; i < size; i += 997) ASSERT_EQ(answer[i], static_cast<char>(i * 7)) << i;
}

TEST_F(IsolatesAll, a_failure_in_a_cell_names_the_ifunc_and_the_node) {
  const auto failed = call(misbehave, ask_to(What::talk));
  EXPECT_EQ(failed->status, TC_ERR_IFUNC);
  EXPECT_THAT(failed->message,
              AllOf(HasSubstr("node 1 (test1)"), HasSubstr("'misbehave'"), HasSubstr("as it was told to")));
  EXPECT_EQ(stat("cell-deaths"), 0u);
}

TEST_F(IsolatesAll, an_answer_is_given_once) {
  EXPECT_EQ(text_of(*call(misbehave, ask_to(What::twice))), "one");
  EXPECT_EQ(text_of(*call(echo, "x")), "x");
  EXPECT_EQ(source->stat("late-answers"), 0u);
}

// ---- Its end

TEST_F(IsolatesAll, a_crash_names_the_ifunc_its_content_and_the_signal_and_the_next_call_is_answered) {
  const auto crashed = call(crash, "n");
  EXPECT_EQ(crashed->status, TC_ERR_CRASHED);
  EXPECT_THAT(crashed->message, AllOf(HasSubstr("node 1 (test1)"),
                                      HasSubstr("ifunc 'crash' (" + crash.id().short_hex() +
                                                ") ended its cell, which was ended by signal 11"),
                                      HasSubstr("at address 0x0"), HasSubstr("in crash_main+0x")));
  EXPECT_EQ(text_of(*call(crash, "x")), "x");
  EXPECT_EQ(stat("cell-deaths"), 1u);
  EXPECT_EQ(stat("cell-calls"), 1u) << "those that came to their end";
}

TEST_F(IsolatesAll, what_a_call_answered_before_it_crashed_stays_its_answer) {
  const auto future = call(misbehave, ask_to(What::store, {0}, "so far"));
  EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_EQ(text_of(*future), "so far");
  ASSERT_TRUE(until([&] { return stat("cell-deaths") == 1; }));
  EXPECT_EQ(text_of(*call(echo, "x")), "x");
  EXPECT_EQ(source->stat("late-answers"), 0u);
}

TEST_F(IsolatesAll, a_system_call_that_is_forbidden_ends_the_cell_and_is_named) {
  const auto refused = call(misbehave, ask_to(What::system, {SYS_socket, 1, 1}));
  EXPECT_EQ(refused->status, TC_ERR_CRASHED);
  EXPECT_THAT(refused->message, HasSubstr("its code called socket()"));
}

TEST_F(IsolatesAll, a_post_that_crashes_costs_nobody_an_answer) {
  ASSERT_TRUE(source->send(*link, *message(*source, crash, "n"), false, Deadline::after_ms(20'000)));
  EXPECT_EQ(text_of(*call(echo, "x")), "x");
  EXPECT_EQ(stat("cell-deaths"), 1u);
}

TEST_F(IsolatesAll, a_call_that_runs_for_longer_than_the_limit_is_killed_and_those_behind_it_are_answered) {
  const auto endless = send_one_that_stays();
  const auto behind = send(echo, "behind it");
  test::let_pass(11s);  // the limit is 10 s
  ASSERT_TRUE(until([&] { return endless->ready.load(); }));
  EXPECT_EQ(endless->status, TC_ERR_LIMIT);
  EXPECT_THAT(endless->message, HasSubstr("was killed: it ran for more than 10000 ms (execution-limit)"));
  EXPECT_TRUE(answered(behind));
  EXPECT_EQ(stat("cell-deaths"), 1u);
}

TEST_F(IsolatesAll, clients_that_call_all_the_while_are_all_answered_while_code_of_another_crashes) {
  constexpr int clients = 3, calls = 40, crashes = 8;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Link*> links;
  for (uint32_t i = 0; i < clients; ++i) {
    nodes.push_back(net.make(10 + i));
    links.push_back(connect(*nodes.back()));
  }
  const Background running(*target);
  std::vector<std::jthread> threads;
  std::atomic<int> good = 0;
  for (size_t i = 0; i < clients; ++i)
    threads.emplace_back([&, i] {
      const auto message = test::message(*nodes[i], echo, std::to_string(i));
      for (int k = 0; k < calls; ++k) {
        const auto future = test::call(*nodes[i], *links[i], *message);
        EXPECT_EQ(future->status, TC_OK) << future->message;
        good += text_of(*future) == std::to_string(i) ? 1 : 0;
      }
    });
  const auto message = test::message(*source, crash, "n");
  for (int k = 0; k < crashes; ++k) EXPECT_EQ(test::call(*source, *link, *message)->status, TC_ERR_CRASHED);
  threads.clear();
  EXPECT_EQ(good, clients * calls);
}

TEST_F(IsolatesAll, a_cell_that_is_killed_between_calls_is_replaced_and_the_next_call_is_answered) {
  const auto first = process_of(*call(misbehave, ask_for_process()));
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(until([&] { return stat("cell-deaths") == 1; }));
  const auto second = process_of(*call(misbehave, ask_for_process()));
  EXPECT_NE(second, first);
  EXPECT_NE(second, ::getpid());
}

TEST_F(IsolatesAll, a_call_that_comes_before_the_death_of_all_cells_is_known_ends_and_later_ones_are_answered) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(until([&] { return call(echo, "x")->status == TC_OK; }));
    for (const auto process : children()) ::kill(process, SIGKILL);  // the spare one, too
    const auto future = call(echo, "y");
    if (future->status != TC_OK) EXPECT_EQ(future->status, TC_ERR_CRASHED) << future->message;
  }
  EXPECT_TRUE(until([&] { return call(echo, "z")->status == TC_OK; }));
}

// ---- Meanwhile

TEST_F(IsolatesAll, code_that_is_evicted_while_it_runs_answers_and_runs_again) {
  const auto runs = send_one_that_stays("runs");
  target->store().evict(linger.id());
  EXPECT_EQ(stat("codes"), 0u);
  const auto again = send(linger, "again");
  gate.open();
  EXPECT_TRUE(answered(runs));
  EXPECT_TRUE(answered(again));
  EXPECT_EQ(text_of(*again), "again");
  EXPECT_EQ(stat("codes"), 1u);
}

TEST_F(IsolatesAll, a_caller_may_go_while_its_call_runs) {
  const auto runs = send_one_that_stays();
  source.reset();
  for (int polls = 0; polls < 200; ++polls) target->poll();
  gate.open();
  ASSERT_TRUE(run_until({target.get()}, [&] { return stat("cell-calls") == 1 && stat("links") == 0; }));
  source = net.make(3);
  link = connect(*source);
  EXPECT_EQ(text_of(*call(echo, "x")), "x");
}

TEST_F(IsolatesAll, a_node_that_is_freed_while_a_call_runs_in_a_cell_tells_its_callers_and_leaves_no_process) {
  const auto before_all = children();
  EXPECT_FALSE(before_all.empty()) << "the cell, and a spare one";
  const auto runs = send_one_that_stays();
  const auto waits = send(echo, "x");
  for (int polls = 0; polls < 200; ++polls) target->poll(), source->poll();
  target.reset();
  EXPECT_TRUE(children().empty());
  ASSERT_TRUE(run_until({source.get()}, [&] { return runs->ready.load() && waits->ready.load(); }));
  EXPECT_EQ(runs->status, TC_ERR_CLOSED) << runs->message;
  EXPECT_EQ(waits->status, TC_ERR_DISCONNECTED) << waits->message;
}

}  // namespace
}  // namespace tc::node::test
