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
  explicit IsolatesAll(const Net::Adjust& adjust = [](Config&) {}) : target(make_target(adjust)) {}

  std::unique_ptr<Node> make_target(const Net::Adjust& adjust) {
    auto node = net.make(1, [&](Config& config) {
      config.isolate = Isolate::all;
      adjust(config);
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
  std::unique_ptr<Node> target;
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

// The ring between node and cell has 128 KiB. What has no room there is sent on by a node that sleeps between its polls.
TEST_F(IsolatesAll, payloads_and_answers_of_any_size_pass_a_node_that_sleeps) {
  const Background running(*target);
  for (const size_t size : {32'000u, 130'000u, 131'072u, 131'100u, 200'000u, 1'000'000u, 16u << 20}) {
    std::string payload(size, 'x');
    for (size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 31 + i / 251);
    const auto future = test::call(*source, *link, *message(*source, echo, payload));
    ASSERT_EQ(future->status, TC_OK) << size << ": " << future->message;
    EXPECT_TRUE(text_of(*future) == payload) << size;
  }
}

TEST_F(IsolatesAll, a_node_sleeps_while_its_cell_reads_nothing) {
  const auto process = process_of(*call(misbehave, ask_for_process()));
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  const auto future = send(echo, std::string(1 << 20, 'x'));
  for (int polls = 0; polls < 2000; ++polls) target->poll(), source->poll();
  const auto cpu_ms = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
  };
  const auto before = cpu_ms();
  for (const auto deadline = Deadline::after_ms(300); !deadline.passed();) target->wait(deadline);
  EXPECT_LT(cpu_ms() - before, 200);
  ASSERT_EQ(::kill(process, SIGCONT), 0);
  EXPECT_TRUE(answered(future)) << future->message;
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

class IsolatesAllForASecond : public IsolatesAll {
 protected:
  IsolatesAllForASecond() : IsolatesAll([](Config& config) { config.execution_limit_ms = 1000; }) {}
};

TEST_F(IsolatesAllForASecond, a_call_that_runs_for_longer_than_the_limit_is_killed_and_those_behind_it_are_answered) {
  const auto endless = send_one_that_stays();
  const auto behind = send(echo, "behind it");
  test::let_pass(2s);  // more than the limit, and less than a cell may take to start
  ASSERT_TRUE(until([&] { return endless->ready.load(); }));
  EXPECT_EQ(endless->status, TC_ERR_LIMIT);
  EXPECT_THAT(endless->message, HasSubstr("was killed: it ran for more than 1000 ms (execution-limit)"));
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

TEST_F(IsolatesAll, a_call_whose_cell_is_killed_before_its_code_begins_runs_in_another_one) {
  const auto first = process_of(*call(misbehave, ask_for_process()));
  ASSERT_EQ(::kill(first, SIGSTOP), 0);
  const auto future = send(misbehave, ask_for_process());
  for (int polls = 0; polls < 200; ++polls) target->poll(), source->poll();
  ASSERT_EQ(::kill(first, SIGKILL), 0);
  ASSERT_TRUE(answered(future)) << future->message;
  EXPECT_NE(process_of(*future), first);
  EXPECT_TRUE(until([&] { return stat("cell-deaths") == 1; })) << "its end may be seen after the answer";
}

TEST_F(IsolatesAll, a_call_whose_code_has_begun_is_not_run_again) {
  const auto runs = send_one_that_stays();
  for (const auto process : children()) ::kill(process, SIGKILL);
  ASSERT_TRUE(until([&] { return runs->ready.load(); }));
  EXPECT_EQ(runs->status, TC_ERR_CRASHED) << runs->message;
  EXPECT_EQ(gate.inside(), 1u);
}

TEST_F(IsolatesAll, a_call_that_comes_before_the_death_of_all_cells_is_known_ends_and_later_ones_are_answered) {
  for (int round = 0; round < 5; ++round) {
    ASSERT_TRUE(until([&] { return call(echo, "x")->status == TC_OK; }));
    for (const auto process : children()) ::kill(process, SIGKILL);  // the spare one, too
    const auto future = call(echo, "y");
    // The third one: a cell that was being started was killed as well.
    EXPECT_THAT(future->status, ::testing::AnyOf(TC_OK, TC_ERR_CRASHED, TC_ERR_IO)) << future->message;
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

TEST_F(IsolatesAll, a_call_that_is_canceled_ends_with_its_cell_and_those_behind_it_are_answered) {
  const auto stays = send_one_that_stays(), behind = send(echo, "behind"), last = send(echo, "last");
  source->cancel(*behind);
  EXPECT_FALSE(last->ready);
  source->cancel(*stays);
  EXPECT_EQ(stays->status, TC_ERR_CANCELED);
  EXPECT_TRUE(answered(last));
  EXPECT_EQ(text_of(*last), "last");
  EXPECT_EQ(stat("cell-deaths"), 1u);
  EXPECT_EQ(stat("cell-calls"), 1u) << "the last one alone came to its end";
  EXPECT_EQ(text_of(*call(echo, "as ever")), "as ever");
}

class IsolatesAllAndLogs : public IsolatesAll {
 protected:
  struct Lines {
    std::mutex mutex;
    std::string text;
  };
  explicit IsolatesAllAndLogs(std::shared_ptr<Lines> lines = std::make_shared<Lines>())
      : IsolatesAll([lines](Config& config) {
          config.log = "info";
          config.log_sink = [lines](int level, const char* line) {
            const std::scoped_lock lock(lines->mutex);
            if (level >= 2) lines->text += std::string(line) + "\n";
          };
        }),
        lines_(std::move(lines)) {}
  std::string warnings_and_errors() const {
    const std::scoped_lock lock(lines_->mutex);
    return lines_->text;
  }

 private:
  std::shared_ptr<Lines> lines_;
};

// The cell is killed when its call has ended, and the node has not read that far: it reads some messages with each poll.
TEST_F(IsolatesAllAndLogs, a_call_that_is_canceled_while_it_ends_is_no_error_of_its_cell) {
  const auto ends = send(misbehave, ask_to(What::chatter, {2500}));
  ASSERT_TRUE(until([&] { return target->report().running == "misbehave"; }));
  std::this_thread::sleep_for(100ms);
  source->cancel(*ends);
  for (int polls = 0; polls < 100; ++polls) source->poll();
  ASSERT_TRUE(until([&] { return stat("cell-deaths") == 1; }));
  EXPECT_EQ(text_of(*call(echo, "x")), "x");
  EXPECT_EQ(warnings_and_errors(), "");
}

TEST_F(IsolatesAll, another_client_cannot_cancel_a_call) {
  const auto stays = send_one_that_stays();
  auto other = net.make(3);
  auto* const its_link = connect(*other);
  its_link->cancel_call(stays->token);
  const auto its = send(*other, *its_link, echo, "behind");
  EXPECT_TRUE(run_until({target.get(), other.get()}, [&] { return its->ready.load(); })) << "in another cell";
  gate.open();
  EXPECT_TRUE(answered(stays));
  EXPECT_EQ(text_of(*stays), "stays");
  EXPECT_EQ(stat("cell-deaths"), 0u);
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

// ---- Several calls at once

class TwoCells : public IsolatesAll {
 protected:
  TwoCells()
      : IsolatesAll([](Config& config) {
          config.cells = 2;
          config.execution_limit_ms = 1000;
        }) {
    EXPECT_TRUE(text.expose(*target, "text"));
    EXPECT_TRUE(meeting.expose(*target, "meeting"));
  }
  std::shared_ptr<Future> send_by_other(const Bundle& bundle, std::string_view payload) {
    return IsolatesAll::send(*other, *other_link, bundle, payload);
  }
  bool until(const std::function<bool()>& done) { return run_until({target.get(), source.get(), other.get()}, done); }
  void poll_for_a_while() {
    for (int polls = 0; polls < 2000; ++polls) target->poll(), source->poll(), other->poll();
  }
  bool is_answered(const std::shared_ptr<Future>& future) {
    return until([&] { return future->ready.load(); }) && future->status == TC_OK;
  }
  // Calls that have begun to wait for each other.
  char met() const { return *meeting.data(); }

  SharedMemory text{8}, meeting{8};
  std::unique_ptr<Node> other = net.make(3);
  Link* other_link = connect(*other);
  const Bundle meet = load_bundle("meet");
};

TEST_F(TwoCells, a_call_that_stays_holds_up_those_behind_it_by_its_own_link_alone) {
  const auto stays = send_one_that_stays();
  const auto behind = send(echo, "behind");
  const auto others = send_by_other(echo, "other");
  ASSERT_TRUE(is_answered(others));
  EXPECT_EQ(text_of(*others), "other");
  EXPECT_FALSE(stays->ready.load() || behind->ready.load());
  gate.open();
  EXPECT_TRUE(is_answered(stays) && is_answered(behind));
  EXPECT_EQ(stat("cell-deaths"), 0u);
}

TEST_F(TwoCells, ordinary_calls_have_named_data_one_after_the_other) {
  for (int round = 1; round <= 3; ++round) {  // later, the code of both cells has had it before
    const auto stays = send_one_that_stays();
    const auto waits = send_by_other(append, "x");
    ASSERT_TRUE(until([&] { return stat("cell-data-waits") == static_cast<uint64_t>(round); }));
    EXPECT_FALSE(waits->ready.load());
    EXPECT_EQ(text.text()[0], round - 1);
    gate.open();
    ASSERT_TRUE(is_answered(stays) && is_answered(waits));
    EXPECT_EQ(text.text()[0], round);
    gate.shut();
  }
}

TEST_F(TwoCells, a_concurrent_call_has_named_data_while_an_ordinary_one_has_it) {
  const auto stays = send_one_that_stays();
  EXPECT_TRUE(is_answered(send_by_other(meet, "\1")));
  EXPECT_FALSE(stays->ready.load());
  gate.open();
  EXPECT_TRUE(is_answered(stays));
}

TEST_F(TwoCells, to_wait_for_data_is_not_to_run_for_too_long_and_its_turn_comes_when_the_other_call_is_killed) {
  const auto stays = send_one_that_stays();
  const auto waits = send_by_other(append, "x");
  ASSERT_TRUE(until([&] { return stat("cell-data-waits") == 1; }));
  test::let_pass(2s);
  EXPECT_TRUE(is_answered(waits)) << waits->message;
  EXPECT_EQ(stays->status, TC_ERR_LIMIT);
  EXPECT_EQ(text.text().substr(0, 2), "\1x");
}

TEST_F(TwoCells, as_many_concurrent_calls_run_at_once_as_there_may_be_and_the_next_one_waits) {
  std::vector<std::shared_ptr<Future>> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(send(meet, "\3"));
  ASSERT_TRUE(until([&] { return met() == 2; }));
  poll_for_a_while();
  EXPECT_EQ(met(), 2);
  test::let_pass(2s);
  EXPECT_TRUE(is_answered(calls[2])) << calls[2]->message;
  ASSERT_TRUE(until([&] { return calls[0]->ready.load() && calls[1]->ready.load(); }));
  EXPECT_TRUE(calls[0]->status == TC_ERR_LIMIT || calls[1]->status == TC_ERR_LIMIT)
      << "the other one may meet the third";
  EXPECT_TRUE(until([&] { return children().size() <= 3; })) << "two, and a spare one";
}

TEST_F(TwoCells, calls_of_two_links_are_all_answered_while_cells_die_at_any_moment) {
  std::vector<std::shared_ptr<Future>> good, bad;
  for (int i = 0; i < 60; ++i) {
    good.push_back(send(echo, std::to_string(i)));
    (i % 7 == 0 ? bad : good).push_back(send_by_other(i % 7 == 0 ? crash : echo, i % 7 == 0 ? "n" : std::to_string(i)));
  }
  for (const auto& future : good) EXPECT_TRUE(is_answered(future)) << future->message;
  for (const auto& future : bad) {
    ASSERT_TRUE(until([&] { return future->ready.load(); }));
    EXPECT_EQ(future->status, TC_ERR_CRASHED) << future->message;
  }
  EXPECT_EQ(stat("cell-deaths"), bad.size());
}

// ---- What a call in a cell asks of its node

class ClusterOfCells : public ::testing::Test, protected Cluster {
 protected:
  void start(uint32_t size) {
    make_nodes(size, [](Config& config) { config.isolate = Isolate::all; });
    client = net.make(9);
    Cluster::start();
    link = test::connect(*client, "n0");
  }
  std::shared_ptr<Future> call(const std::string& ifunc, std::string_view payload) {
    return test::call(*client, *link, *message(*client, ifunc, payload));
  }
  std::unique_ptr<Node> client;
  Link* link = nullptr;
};

TEST_F(ClusterOfCells, a_call_travels_from_cell_to_cell_and_its_answer_comes_from_the_last_one) {
  start(3);
  const auto future = test::call(*client, *link, *travel(*client, 10));
  ASSERT_EQ(future->status, TC_OK) << future->message;
  const auto result = result_of(*future);
  ASSERT_EQ(result.visited, 11u);
  for (uint32_t i = 0; i < 11; ++i) EXPECT_EQ(result.nodes[i], i % 3);
  stop();
  // The last answer leaves before its call has ended.
  EXPECT_TRUE(run_until({nodes[0].get()}, [&] { return nodes[0]->stat("cell-calls").value() == 4u; }));
}

TEST_F(ClusterOfCells, calls_of_a_node_to_itself_run_in_its_cell) {
  start(1);
  const auto future = test::call(*client, *link, *travel(*client, 10));
  ASSERT_EQ(future->status, TC_OK) << future->message;
  EXPECT_EQ(result_of(*future).visited, 11u);
  stop();
  // The last answer leaves before its call has ended.
  EXPECT_TRUE(run_until({nodes[0].get()}, [&] { return nodes[0]->stat("cell-calls").value() == 11u; }));
}

TEST_F(ClusterOfCells, another_ifunc_that_is_bundled_answers_in_the_place_of_one_in_a_cell) {
  start(2);
  using namespace std::string_literals;
  const auto future = call("choose", "1 echo\0words"s);
  EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_EQ(text_of(*future), "words");
}

TEST_F(ClusterOfCells, an_ifunc_in_a_cell_calls_another_one_by_name) {
  start(3);
  stop();
  const SharedMemory texts[] = {SharedMemory(8), SharedMemory(8), SharedMemory(8)};
  for (uint32_t id = 0; id < 3; ++id) ASSERT_TRUE(texts[id].expose(*nodes[id], "text"));
  ASSERT_TRUE(nodes[0]->register_bundle(load_bundle("append")));
  Cluster::start();
  const auto future = call("spread", "x");
  EXPECT_EQ(future->status, TC_OK) << future->message;
  for (const size_t id : {1u, 2u})
    EXPECT_TRUE(tc::test::run_until([&] { return texts[id].text().substr(0, 2) == "\1x"; }, [&] { client->poll(); }));
}

TEST_F(ClusterOfCells, a_call_that_went_on_is_answered_there_alone) {
  start(2);
  const auto future = call("misbehave", ask_to(What::forward, {1}, ask_to(What::echo, {}, "from there")));
  EXPECT_EQ(text_of(*future), "from there") << future->message;
  EXPECT_EQ(text_of(*call("echo", "x")), "x");
  EXPECT_EQ(client->stat("late-answers"), 0u);
}

TEST_F(ClusterOfCells, a_call_that_cannot_go_on_is_told_so_and_answers_itself) {
  start(1);
  const auto future = call("misbehave", ask_to(What::forward, {7}, "x"));
  ASSERT_EQ(future->bytes.size(), sizeof(uint64_t)) << future->message;
  uint64_t status = 0;
  std::memcpy(&status, future->bytes.data(), sizeof status);
  EXPECT_NE(status, TC_OK);
}

// ---- Whose code

class HasCells : public WithKeyring {
 protected:
  pid_t process(Node& node, const Bundle& bundle) { return process_of(*call(node, bundle, ask_for_process())); }
  // Not while the target reads both clocks, one after the other.
  void let_pass(std::chrono::seconds time) {
    running.reset();
    test::let_pass(time);
    run();
  }
  static Net::Adjust isolate(Isolate which) {
    return [which](Config& config) { config.isolate = which; };
  }
  std::shared_ptr<Future> send(Node& node, const Bundle& bundle, std::string_view payload) {
    return node.call(*connect(node, "n1"), *message(node, bundle, payload), 0, Deadline::after_ms(20'000)).value();
  }
  static bool until(Node& client, const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] { client.poll(); }, 60'000);
  }
  bool ended(Node& client, const std::shared_ptr<Future>& future) {
    return until(client, [&] { return future->ready.load(); });
  }
  // A program that is no cell.
  std::string make_program(const std::string& does) {
    const auto path = net.home.path() / "program";
    EXPECT_TRUE(write_file_atomically(path, as_bytes("#!/bin/sh\n" + does + "\n")));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path.string();
  }

  const Bundle misbehave = load_bundle("misbehave"), linger = load_bundle("linger");
  const pid_t here = ::getpid();
  const std::string never_ready = "exec sleep 1000";
};

TEST_F(HasCells, code_of_a_key_with_in_cell_runs_in_a_cell_and_that_of_others_does_not) {
  start(ana.line("run=any in=cell") + bob.line("run=any"));
  EXPECT_EQ(process(*peer(3, bob), misbehave), here);
  EXPECT_TRUE(children().empty()) << "there is no cell before one is needed";
  const auto cell = process(*peer(2, ana), misbehave);
  EXPECT_NE(cell, here);
  EXPECT_EQ(process(*peer(4, bob), misbehave), here);
  EXPECT_EQ(process(*own_peer(5), misbehave), here);
  EXPECT_EQ(stat("cell-calls"), 1u);
}

TEST_F(HasCells, code_that_a_key_with_in_cell_signed_runs_in_a_cell_for_others) {
  start(ana.line() + bob.line("in=cell"));
  const auto client = peer(2, ana);
  EXPECT_NE(process(*client, bob.signs(misbehave)), here);
}

TEST_F(HasCells, a_call_in_a_cell_is_counted_once_and_measured) {
  start(ana.line("run=any in=cell"));
  const auto client = peer(2, ana);
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  running.reset();
  const auto has_ended = [&] { return target->poll(), target->stat("cell-calls").value() == 1; };
  ASSERT_TRUE(tc::test::run_until(has_ended, [] {}));
  const auto ifuncs = target->report().ifuncs;
  ASSERT_EQ(ifuncs.size(), 1u);
  EXPECT_EQ(ifuncs[0].calls, 1u);
  EXPECT_EQ(ifuncs[0].run.count(), 1u);
  EXPECT_EQ(ifuncs[0].latency.count(), 1u);
  EXPECT_GE(ifuncs[0].latency.sum_ns, ifuncs[0].run.sum_ns);
  run();
}

TEST_F(HasCells, where_the_untrusted_are_isolated_signed_code_runs_in_a_cell_and_that_of_run_any_does_not) {
  start(ana.line("run=any") + bob.line(), isolate(Isolate::untrusted));
  const auto cell = process(*peer(3, bob), bob.signs(misbehave));
  EXPECT_NE(cell, here);
  EXPECT_TRUE(children().contains(cell));
  EXPECT_EQ(process(*peer(2, ana), misbehave), here);
  EXPECT_EQ(process(*own_peer(4), misbehave), here);
}

// North sends what ana and bob call on to east, which isolates the untrusted.
class OnBehalfInCells : public ::testing::Test, protected Cluster {
 protected:
  OnBehalfInCells() {
    const std::pair<const char*, const Person*> places[] = {{"n0", &north}, {"n1", &east}, {"n7", &ana}, {"n8", &bob}};
    std::string everybody;
    for (const auto& [address, person] : places) {
      net.network.make_foreign(address, person->public_key());
      everybody += person->line("run=any");
    }
    write("everybody", everybody);
    write("of-east", north.line("run=any") + ana.line("run=any") + bob.line("write=text"));
    make_nodes(2, [&](Config& config) {
      config.keyring = path(config.id == 0 ? "everybody" : "of-east");
      if (config.id == 1) config.isolate = Isolate::untrusted;
    });
    for (const uint32_t id : {7u, 8u})
      clients.push_back(net.make(id, [&](Config& config) { config.keyring = path("everybody"); }));
    EXPECT_TRUE(text.expose(*nodes[1], "text"));
    EXPECT_TRUE(nodes[0]->register_bundle(bob.signs(load_bundle("append"))));
    Cluster::start();
  }
  std::string path(const std::string& name) { return (net.home.path() / name).string(); }
  void write(const std::string& name, const std::string& lines) {
    EXPECT_TRUE(write_file_atomically(path(name), as_bytes(lines)));
  }
  std::shared_ptr<Future> call(Node& client, const Bundle& bundle, std::string_view payload) {
    return test::call(client, *test::connect(client, "n0"), *message(client, bundle, payload));
  }
  Person ana{"ana"}, bob{"bob"}, north{"north"}, east{"east"};
  SharedMemory text{8};
  std::vector<std::unique_ptr<Node>> clients;
};

TEST_F(OnBehalfInCells, a_call_on_behalf_of_one_who_may_run_signed_code_only_runs_in_a_cell) {
  const auto misbehave = bob.signs(load_bundle("misbehave"));
  const auto onwards = ask_to(What::forward, {1}, ask_for_process());
  const auto of_bob = process_of(*call(*clients[1], misbehave, onwards));
  EXPECT_NE(of_bob, ::getpid());
  EXPECT_EQ(process_of(*call(*clients[0], misbehave, onwards)), ::getpid()) << "ana and north may run any code";
}

TEST_F(OnBehalfInCells, what_is_injected_on_behalf_of_such_a_one_runs_in_a_cell) {
  EXPECT_EQ(call(*clients[1], bob.signs(load_bundle("spread")), "x")->status, TC_OK);
  EXPECT_TRUE(tc::test::run_until([&] { return text.text().substr(0, 2) == "\1x"; }, [&] { clients[1]->poll(); }));
  stop();
  EXPECT_TRUE(run_until({nodes[1].get()}, [&] { return nodes[1]->stat("cell-calls").value() == 1; }));
}

// ---- Code that only cells may run is linked nowhere else

class LinksForCells : public HasCells {
 protected:
  void start() {
    HasCells::start(ana.line("run=any in=cell") + bob.line("run=any"),
                    [](Config& config) { config.allowed_exports = {"greeting_*"}; });
  }
  static Bundle library(const std::string& version) { return renamed(load_bundle("library_" + version), "greeting"); }
  std::shared_ptr<Future> use(Node& node) { return call(node, load_bundle("uses_library"), {"\1\0\0\0", 4}); }
};

TEST_F(LinksForCells, and_in_the_node_when_somebody_else_may_run_it_there) {
  start();
  const auto of_ana = peer(2, ana), of_bob = peer(3, bob);
  EXPECT_NE(process(*of_ana, misbehave), here);
  EXPECT_EQ(stat("code-loads"), 1u);
  EXPECT_EQ(stat("object-loads"), 0u);
  EXPECT_EQ(process(*of_bob, misbehave), here);
  EXPECT_EQ(stat("code-loads"), 1u);
  EXPECT_EQ(stat("object-loads"), 1u);
  EXPECT_NE(process(*of_ana, misbehave), here);
  EXPECT_EQ(process(*of_bob, misbehave), here);
}

TEST_F(LinksForCells, and_in_the_node_once_the_same_peer_may_run_it_there) {
  start();
  const auto client = peer(2, ana);
  EXPECT_NE(process(*client, misbehave), here);
  reload(ana.line("run=any"));
  EXPECT_EQ(process(*client, misbehave), here);
}

TEST_F(LinksForCells, and_in_cells_when_the_node_has_linked_it_before) {
  start();
  EXPECT_EQ(process(*peer(3, bob), misbehave), here);
  EXPECT_NE(process(*peer(2, ana), misbehave), here);
}

TEST_F(LinksForCells, a_library_that_only_code_in_cells_can_use) {
  start();
  const auto of_ana = peer(2, ana), of_bob = peer(3, bob);
  EXPECT_EQ(call(*of_ana, library("one"))->status, TC_OK);
  EXPECT_EQ(use(*of_ana)->status, TC_OK);
  EXPECT_EQ(stat("object-loads"), 0u);
  const auto refused = use(*of_bob);
  EXPECT_EQ(refused->status, TC_ERR_UNRESOLVED);
  EXPECT_THAT(refused->message, HasSubstr("is exported by a library whose sender's code runs in cells alone"));
  EXPECT_EQ(call(*of_bob, library("one"))->status, TC_OK);
  EXPECT_EQ(use(*of_bob)->status, TC_OK) << "bob's library may be used by all";
  EXPECT_EQ(use(*of_ana)->status, TC_OK);
}

TEST_F(LinksForCells, a_library_of_theirs_does_not_take_the_place_of_one_that_code_in_the_node_uses) {
  start();
  const auto of_ana = peer(2, ana), of_bob = peer(3, bob);
  EXPECT_EQ(call(*of_bob, library("one"))->status, TC_OK);
  EXPECT_EQ(use(*of_bob)->status, TC_OK);
  const auto refused = call(*of_ana, library("two"));
  EXPECT_EQ(refused->status, TC_ERR_UNRESOLVED);
  EXPECT_THAT(refused->message, HasSubstr("which uses it here, does not link to this version"));
  EXPECT_EQ(use(*of_bob)->status, TC_OK);
}

TEST_F(LinksForCells, what_cannot_be_linked_there_is_refused_each_time_and_tried_once) {
  start();
  const auto client = peer(2, ana);
  const auto first = use(*client);
  EXPECT_EQ(first->status, TC_ERR_UNRESOLVED);
  EXPECT_THAT(first->message, HasSubstr("is not available in the cells of this node"));
  EXPECT_EQ(use(*client)->message, first->message);
  EXPECT_EQ(call(*client, library("one"))->status, TC_OK);
  EXPECT_EQ(use(*client)->status, TC_OK) << "the library has come";
}

// ---- Rights that change

TEST_F(HasCells, in_cell_counts_from_the_next_call_on_when_it_is_added_or_removed) {
  start(ana.line("run=any"));
  const auto client = peer(2, ana);
  EXPECT_EQ(process(*client, misbehave), here);
  reload(ana.line("run=any in=cell"));
  EXPECT_NE(process(*client, misbehave), here);
  reload(ana.line("run=any"));
  EXPECT_EQ(process(*client, misbehave), here);
}

TEST_F(HasCells, a_call_that_waits_behind_another_one_runs_by_the_rights_of_then) {
  const Gate gate;
  start(ana.line("run=any in=cell write=gate"));
  running.reset();
  ASSERT_TRUE(gate.expose(*target));
  run();
  const auto client = peer(2, ana);
  auto* const link = connect(*client, "n1");
  const auto send_by_it = [&](const Bundle& bundle, std::string_view payload) {
    return client->call(*link, *message(*client, bundle, payload), 0, Deadline::after_ms(20'000)).value();
  };
  const auto runs = send_by_it(linger, "runs");
  ASSERT_TRUE(until(*client, [&] { return gate.inside() == 1; }));
  const auto waits = send_by_it(misbehave, ask_for_process());
  reload(ana.line("run=any write=gate"));
  EXPECT_FALSE(waits->ready.load());
  gate.open();
  ASSERT_TRUE(ended(*client, runs) && ended(*client, waits));
  EXPECT_EQ(text_of(*runs), "runs") << runs->message;
  EXPECT_EQ(process_of(*waits), here);
}

TEST_F(HasCells, a_call_that_waits_for_a_cell_is_refused_when_the_keyring_has_changed) {
  start(ana.line("run=any in=cell"), [&](Config& config) { config.cell = make_program(never_ready); });
  const auto client = peer(2, ana);
  const auto waits = send(*client, echo, "x");
  ASSERT_TRUE(until(*client, [] { return !children().empty(); }));
  reload(ana.line("run=any in=cell") + bob.line());
  ASSERT_TRUE(ended(*client, waits));
  expect_denied(*waits, "what its sender may do here has changed before it ran: call again");
}

TEST_F(HasCells, a_key_that_is_revoked_while_its_call_runs_gets_no_answer_and_others_are_served) {
  const Gate gate;
  start(ana.line("run=any in=cell write=gate") + bob.line("run=any in=cell"));
  running.reset();
  ASSERT_TRUE(gate.expose(*target));
  run();
  const auto client = peer(2, ana), other = peer(3, bob);
  const auto runs = send(*client, linger, "runs");
  ASSERT_TRUE(until(*client, [&] { return gate.inside() == 1; }));
  reload(ana.line("run=any in=cell write=gate revoked=2026-01-01") + bob.line("run=any in=cell"));
  ASSERT_TRUE(ended(*client, runs));
  EXPECT_NE(runs->status, TC_OK);
  const auto waits = send(*other, echo, "served");
  gate.open();
  ASSERT_TRUE(ended(*other, waits));
  EXPECT_EQ(text_of(*waits), "served") << waits->message;
  EXPECT_EQ(stat("cell-deaths"), 0u);
}

// ---- Named data

TEST_F(HasCells, data_of_a_file_is_read_and_written_as_the_caller_may) {
  const SharedMemory number(4);
  std::memcpy(number.data(), "0123", 4);
  start(ana.line("run=any in=cell write=number") + bob.line("run=any in=cell read=number") +
        eve.line("run=any in=cell read=other"));
  running.reset();
  ASSERT_TRUE(number.expose(*target, "number"));
  run();
  const std::string name("number\0", 7);
  const auto read = [&](Node& node) { return call(node, misbehave, ask_to(What::read, {}, name)); };
  const auto write = [&](Node& node) { return call(node, misbehave, ask_to(What::write, {1, 'x'}, name)); };
  EXPECT_EQ(read(*peer(4, eve))->status, TC_ERR_IFUNC) << "it may not read it";
  const auto reader = peer(3, bob);
  EXPECT_EQ(text_of(*read(*reader)), "0123");
  const auto crashed = write(*reader);
  EXPECT_EQ(crashed->status, TC_ERR_CRASHED);
  EXPECT_THAT(crashed->message, HasSubstr("signal 11"));
  EXPECT_EQ(number.text(), "0123");
  EXPECT_EQ(text_of(*write(*peer(2, ana))), "0x23");
  EXPECT_EQ(number.text(), "0x23");
}

TEST_F(HasCells, target_args_are_there_if_they_are_a_file_that_the_caller_may_read) {
  const SharedMemory number(sizeof(uint64_t));
  *number.data() = 42;
  start(ana.line("run=any in=cell read=number") + bob.line("run=any in=cell write=number") +
        eve.line("run=any in=cell read=other"));
  running.reset();
  ASSERT_TRUE(number.expose(*target, "number"));
  target->executor().target_args = number.data();
  run();
  const auto ask = [&](Node& node) { return call(node, misbehave, ask_to(What::target)); };
  const auto reader = peer(2, ana), writer = peer(3, bob), other = peer(4, eve);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(process_of(*ask(*reader)), 42);
    EXPECT_EQ(process_of(*ask(*writer)), 42);
    const auto crashed = ask(*other);
    EXPECT_EQ(crashed->status, TC_ERR_CRASHED) << "a null pointer";
    EXPECT_THAT(crashed->message, HasSubstr("at address 0x0"));
  }
}

TEST_F(HasCells, data_that_is_memory_of_the_process_is_not_there_in_a_cell_and_the_log_says_why) {
  char memory[] = "here";
  start(ana.line("run=any in=cell read=*"));
  running.reset();
  ASSERT_TRUE(target->expose("memory", memory, sizeof memory));
  run();
  const auto failed = call(*peer(2, ana), misbehave, ask_to(What::read, {}, std::string("memory\0", 7)));
  EXPECT_EQ(failed->status, TC_ERR_IFUNC);
  EXPECT_THAT(failed->message, HasSubstr("there is no such data"));
  EXPECT_TRUE(wait_for_log("data 'memory' is memory of this process alone"));
}

TEST_F(HasCells, what_one_caller_may_read_or_write_is_not_there_for_the_next_one_in_the_same_cell) {
  const SharedMemory number(4);
  std::memcpy(number.data(), "0123", 4);
  start(ana.line("run=any in=cell write=number") + bob.line("run=any in=cell read=number") +
        eve.line("run=any in=cell read=other"));
  running.reset();
  ASSERT_TRUE(number.expose(*target, "number"));
  run();
  const std::string name("number\0", 7);
  const auto writer = peer(2, ana), reader = peer(3, bob), other = peer(4, eve);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(text_of(*call(*writer, misbehave, ask_to(What::write, {1, 'x'}, name))), "0x23");
    EXPECT_EQ(call(*other, misbehave, ask_to(What::read, {}, name))->status, TC_ERR_IFUNC);
    EXPECT_EQ(text_of(*call(*reader, misbehave, ask_to(What::read, {}, name))), "0x23");
    EXPECT_EQ(call(*other, misbehave, ask_to(What::read, {}, name))->status, TC_ERR_IFUNC);
  }
  EXPECT_EQ(stat("cell-deaths"), 0u);
  EXPECT_EQ(text_of(*call(*writer, misbehave, ask_to(What::write, {1, 'y'}, name))), "0y23");
  EXPECT_EQ(call(*reader, misbehave, ask_to(What::write, {1, 'z'}, name))->status, TC_ERR_CRASHED);
  EXPECT_EQ(number.text(), "0y23");
}

TEST_F(HasCells, data_that_was_withdrawn_or_replaced_is_not_there_for_the_next_call) {
  const SharedMemory first(4), second(6);
  std::memcpy(first.data(), "0123", 4);
  std::memcpy(second.data(), "456789", 6);
  start(ana.line("run=any in=cell read=number"));
  const auto client = peer(2, ana);
  const auto read = [&] { return call(*client, misbehave, ask_to(What::read, {}, std::string("number\0", 7))); };
  const auto expose = [&](const SharedMemory* memory) {
    running.reset();
    ASSERT_TRUE(memory != nullptr ? memory->expose(*target, "number") : target->expose("number", nullptr, 0));
    run();
  };
  expose(&first);
  EXPECT_EQ(text_of(*read()), "0123");
  expose(&second);
  EXPECT_EQ(text_of(*read()), "456789");
  expose(nullptr);
  EXPECT_EQ(read()->status, TC_ERR_IFUNC);
  expose(&first);
  EXPECT_EQ(text_of(*read()), "0123");
}

// ---- No cell

TEST_F(HasCells, without_the_program_a_node_that_isolates_does_not_start_and_says_which_program) {
  for (const auto which : {Isolate::all, Isolate::untrusted}) {
    auto config = Config::defaults();
    config.log = "off";
    config.isolate = which;
    config.cell = "/no/such/threechains-cell";
    const auto node = Node::create(std::move(config), [this](const Config&, transport::Events& events) {
      return Result<std::unique_ptr<transport::Transport>>(net.network.join(events));
    });
    ASSERT_FALSE(node);
    EXPECT_EQ(node.error().code, TC_ERR_NOT_FOUND);
    EXPECT_THAT(node.error().message, HasSubstr("/no/such/threechains-cell"));
  }
}

TEST_F(HasCells, a_node_that_isolates_does_not_start_with_a_program_that_ends_at_once) {
  auto config = Config::defaults();
  config.log = "off";
  config.isolate = Isolate::all;
  config.cell = make_program("echo 'no cell today' >&2; exit 3");
  const auto node = Node::create(std::move(config), [this](const Config&, transport::Events& events) {
    return Result<std::unique_ptr<transport::Transport>>(net.network.join(events));
  });
  ASSERT_FALSE(node);
  EXPECT_THAT(node.error().message, HasSubstr("no cell today"));
  EXPECT_TRUE(children().empty());
}

TEST_F(HasCells, without_the_program_code_of_a_key_with_in_cell_is_refused_and_others_are_served) {
  start(ana.line("run=any in=cell") + bob.line("run=any"),
        [](Config& config) { config.cell = "/no/such/threechains-cell"; });
  expect_denied(*call(*peer(2, ana), echo),
                "line 1 (ana): in=cell, so its code may run only in a cell, which this node does not have");
  EXPECT_EQ(call(*peer(3, bob), echo)->status, TC_OK);
}

TEST_F(HasCells, calls_are_refused_while_cells_end_at_their_start) {
  start(ana.line("run=any in=cell") + bob.line("run=any"),
        [&](Config& config) { config.cell = make_program("echo 'no cell today' >&2; exit 3"); });
  const auto client = peer(2, ana);
  for (int i = 0; i < 3; ++i) {
    const auto refused = call(*client, echo);
    EXPECT_EQ(refused->status, TC_ERR_IO);
    EXPECT_THAT(refused->message, HasSubstr("did not start: no cell today"));
  }
  EXPECT_EQ(call(*peer(3, bob), echo)->status, TC_OK);
}

TEST_F(HasCells, a_call_is_refused_when_its_cell_is_not_ready_in_time) {
  start(ana.line("run=any in=cell"), [&](Config& config) { config.cell = make_program(never_ready); });
  const auto client = peer(2, ana);
  const auto waits = send(*client, echo, "x");
  ASSERT_TRUE(until(*client, [] { return !children().empty(); }));
  let_pass(11s);
  ASSERT_TRUE(ended(*client, waits));
  EXPECT_EQ(waits->status, TC_ERR_IO);
  EXPECT_THAT(waits->message, HasSubstr("did not become ready in time"));
}

TEST_F(HasCells, a_node_that_is_freed_while_a_cell_starts_tells_its_callers_and_leaves_no_process) {
  start(ana.line("run=any in=cell"), [&](Config& config) { config.cell = make_program(never_ready); });
  const auto client = peer(2, ana);
  const auto waits = send(*client, echo, "first"), behind = send(*client, echo, "second");
  ASSERT_TRUE(until(*client, [] { return !children().empty(); }));
  running.reset();
  for (int polls = 0; polls < 200; ++polls) target->poll(), client->poll();
  target.reset();
  EXPECT_TRUE(children().empty());
  ASSERT_TRUE(ended(*client, waits) && ended(*client, behind));
  EXPECT_EQ(waits->status, TC_ERR_CLOSED) << waits->message;
  EXPECT_EQ(behind->status, TC_ERR_CLOSED) << behind->message;
}

}  // namespace
}  // namespace tc::node::test
