// SPDX-License-Identifier: Apache-2.0
//
// What a node does when a peer or an ifunc does not come back.
#include <atomic>
#include <filesystem>
#include <set>

#include "node/liveness/snapshot.h"
#include "node/liveness/watchdog.h"
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"
#include "wire/testing/bundles.h"

namespace tc::node::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using wire::Kind;

// ---- Nodes that die while calls travel
//
// The calls that died with them fail by their name, all others end as if nothing had happened. Everything runs on one thread,
// so that a test says exactly who has come how far.

class PeerFailures : public ::testing::Test, protected Cluster {
 protected:
  static constexpr uint32_t client_id = 99;
  static constexpr uint32_t long_ms = 600'000;  // a deadline by which nothing here ends

  void make_nodes(uint32_t count) {
    Cluster::make_nodes(count);
    client = net.make(client_id);
  }

  // Drives all nodes but those in `asleep` until `done`. False when that takes too long.
  bool run_until(const std::function<bool()>& done, uint64_t ms = 60'000) {
    return tc::test::run_until(
        done,
        [&] {
          for (uint32_t id = 0; id < nodes.size(); ++id)
            if (nodes[id] && !asleep.contains(id)) drive(*nodes[id]);
          drive(*client);
        },
        ms);
  }
  static void drive(Node& node) {
    node.poll();
    node.expire();
  }
  // So long, and so often that all have come as far as in that time on a machine that does nothing else.
  void run_for(uint64_t ms) {
    const auto end = Deadline::after_ms(ms);
    uint64_t rounds = 0;
    run_until([&] { return ++rounds > 20 * ms && end.passed(); });
  }

  Link* connect(uint32_t id) {
    const Background running(*nodes[id]);
    return test::connect(*client, "n" + std::to_string(id));
  }
  std::shared_ptr<Future> send(Link& link, uint32_t hops, uint32_t deadline_ms = long_ms) {
    return client->call(link, *travel(*client, hops), deadline_ms, Deadline::after_ms(20'000)).value();
  }
  // All links that the ring needs are there, and all nodes hold the code.
  void go_round_once(Link& link) {
    const auto future = send(link, static_cast<uint32_t>(nodes.size()));
    ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
    ASSERT_EQ(future->status, TC_OK) << future->message;
  }
  uint64_t stat(Node& node, const char* name) { return node.stat(name).value(); }
  // Puts a call to where nobody runs it: it is on its way to, or waits at, the node `at`.
  std::shared_ptr<Future> strand(Link& link, uint32_t hops, uint32_t at, uint32_t deadline_ms = long_ms) {
    asleep.insert(at);
    const auto before = stat(*nodes[0], "executed");
    auto future = send(link, hops, deadline_ms);
    EXPECT_TRUE(run_until([&] { return stat(*nodes[0], "executed") > before; }));
    run_for(20);
    EXPECT_FALSE(future->ready.load());
    return future;
  }
  void die(uint32_t id) { nodes[id].reset(); }

  std::unique_ptr<Node> client;
  std::set<uint32_t> asleep;
};

TEST_F(PeerFailures, a_call_lost_with_a_node_on_its_way_fails_early_and_names_that_node) {
  make_nodes(3);
  auto* link = connect(0);
  go_round_once(*link);
  const auto future = strand(*link, 2, 1);
  die(1);
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
  EXPECT_EQ(future->node_id, 1u);
  EXPECT_THAT(future->message, ::testing::HasSubstr("ifunc 'travel' on node 0 (test0): node 1 (test1) died"));
}

TEST_F(PeerFailures, the_event_comes_through_nodes_that_had_no_link_to_the_failed_one) {
  make_nodes(5);
  auto* link = connect(0);
  const auto warm = send(*link, 3);  // 0, 1, 2, 3: the client knows 0 and 3, who had the last word
  ASSERT_TRUE(run_until([&] { return warm->ready.load(); }));
  const auto future = strand(*link, 3, 2);
  die(2);
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
  EXPECT_THAT(future->message, ::testing::HasSubstr("node 2 (test2) died"));
}

TEST_F(PeerFailures, calls_lost_with_a_connection_of_living_nodes_fail_however_often_it_breaks) {
  make_nodes(3);
  auto* link = connect(1);
  for (int i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    go_round_once(*link);
    // It has left node 2, and node 0 does not read it.
    asleep.insert(0);
    const auto before = stat(*nodes[2], "executed");
    const auto future = send(*link, 2);
    ASSERT_TRUE(run_until([&] { return stat(*nodes[2], "executed") > before; }));
    run_for(20);
    nodes[0]->links().each([](Link& one) {
      if (one.is_ready() && one.peer().node_id == 2) one.channel().disconnect(Error{TC_ERR_LIMIT, "no memory"});
    });
    asleep.clear();
    ASSERT_TRUE(run_until([&] { return future->ready.load(); }, 10'000));
    EXPECT_EQ(future->status, TC_ERR_DISCONNECTED) << future->message;
  }
}

TEST_F(PeerFailures, a_call_that_is_elsewhere_when_a_node_fails_goes_on) {
  make_nodes(3);
  auto* link = connect(0);
  go_round_once(*link);
  // It has passed node 1 and waits at node 2.
  const auto future = strand(*link, 2, 2);
  die(1);
  run_for(300);
  EXPECT_FALSE(future->ready.load()) << future->message;
  asleep.clear();
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_OK) << future->message;
}

TEST_F(PeerFailures, of_many_calls_each_fails_or_ends_well_and_none_does_both) {
  make_nodes(5);
  std::vector<Link*> links;
  for (const uint32_t id : {0u, 1u, 2u, 4u}) links.push_back(connect(id));
  for (auto* link : links) go_round_once(*link);
  uint64_t lost = 0, well = 0;
  std::vector<std::shared_ptr<Future>> futures;
  for (int round = 0; round < 60; ++round)
    for (uint32_t i = 0; i < links.size(); ++i) {
      futures.push_back(send(*links[i], 1 + static_cast<uint32_t>(round) % 40));
      if (round % 3 == 0) drive(*nodes[i]);
    }
  // In the middle of it, with calls of every age in every place: some have ended, and some wait at node 3.
  asleep.insert(3);
  ASSERT_TRUE(run_until([&] { return std::ranges::any_of(futures, [](const auto& f) { return f->ready.load(); }); }));
  run_for(2);
  die(3);
  ASSERT_TRUE(run_until([&] { return all_ready(futures); }));
  for (const auto& future : futures) {
    if (future->status == TC_OK) {
      ++well;
      continue;
    }
    ++lost;
    const bool refused = future->status == TC_ERR_IFUNC && future->code == TC_ERR_DISCONNECTED;
    EXPECT_TRUE(refused || future->status == TC_ERR_DISCONNECTED) << future->message;
    const auto names_it =
        ::testing::AnyOf(::testing::HasSubstr("node 3 (test3)"), ::testing::HasSubstr("the peer at n3"));
    if (!refused) {
      EXPECT_THAT(future->message, names_it);
    }
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(well, 0u);
  run_for(200);
  EXPECT_EQ(stat(*client, "late-answers"), 0u) << "a call that was given up was alive";
}

TEST_F(PeerFailures, a_call_that_reaches_its_deadline_names_the_node_that_failed_meanwhile) {
  make_nodes(3);
  auto* link = connect(0);
  go_round_once(*link);
  // It waits at node 2, which hangs: it neither runs it nor says that it has it.
  const auto future = strand(*link, 2, 2, 100'000);
  die(1);
  run_for(50);
  EXPECT_FALSE(future->ready.load()) << future->message;
  test::let_pass(std::chrono::seconds(100));
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_TIMEOUT);
  EXPECT_THAT(future->message, ::testing::HasSubstr("it may still run (node 1 (test1) died meanwhile)"));
}

TEST_F(PeerFailures, a_node_that_starts_again_at_the_same_address_gets_the_code_and_the_calls) {
  make_nodes(3);
  auto* link = connect(0);
  go_round_once(*link);
  die(1);
  run_for(50);
  nodes[1] = net.make(1, [](Config& config) { config.cluster = {"n0", "n1", "n2"}; });
  const auto future = send(*link, 3);
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_EQ(stat(*nodes[1], "code-loads"), 1u);
}

TEST_F(PeerFailures, a_client_that_leaves_is_no_failed_node) {
  make_nodes(2);
  auto* link = connect(0);
  go_round_once(*link);
  auto other = net.make(0, [](Config& config) { config.listen = "other"; });
  {
    const Background running(*nodes[0]);
    test::connect(*other, "n0");
  }
  const auto future = strand(*link, 1, 1);
  other.reset();
  run_for(100);
  EXPECT_FALSE(future->ready.load());
  asleep.clear();
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_OK) << future->message;
}

// ---- A node that waits for an answer when another node dies, among peers made by hand
//
// When it asks where its calls are, what counts as an answer, and what makes it ask again.

class NodeSnapshots : public ::testing::Test {
 protected:
  NodeSnapshots() {
    keeper.says.name = "keeper";
    keeper.listen("keeper");
    greet(doomed, 4712, 8, "doomed");
    greet(client, 4713, Identity::no_id, "client");
    future = caller
                 ->call(*caller->links().find_or_reach("keeper").value(), *test::message(*caller, "echo", "x"), 20'000,
                        Deadline::after_ms(0))
                 .value();
    EXPECT_TRUE(run_until([&] { return keeper.find(Kind::call_code) != nullptr; }));
    token = wire::read_call_header(keeper.find(Kind::call_code)->body.data()).token;
  }

  void greet(RawPeer& peer, uint64_t instance, uint32_t id, const std::string& name) {
    peer.says.instance = instance;
    peer.says.node_id = id;
    peer.says.name = name;
    peer.connect("n1");
    EXPECT_TRUE(run_until([&] { return peer.peer.has_value(); }));
  }
  bool run_until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] {
      for (auto* peer : {&keeper, &doomed, &client}) peer->progress();
      caller->poll();
      caller->expire();
    });
  }
  void run_for(uint64_t ms) {
    const auto end = Deadline::after_ms(ms);
    run_until([&] { return end.passed(); });
  }
  // The numbers of the snapshots that the caller has asked this peer about.
  static std::vector<uint32_t> asked(const RawPeer& peer) {
    std::vector<uint32_t> numbers;
    for (const auto& frame : peer.frames)
      if (frame.header.kind == Kind::cluster_event && frame.header.number == wire::event_marker)
        numbers.push_back(wire::decode_marker(frame.body).value().number);
    return numbers;
  }
  bool is_asked(uint32_t snapshot) {
    return run_until([&] { return std::ranges::count(asked(keeper), snapshot) == 1; });
  }
  void send_marker(RawPeer& peer, uint32_t snapshot, uint8_t flags = 0) {
    peer.send(Kind::cluster_event, wire::event_marker,
              wire::encode_marker({caller->identity().instance, snapshot, flags}));
  }
  void send_report(RawPeer& peer, uint32_t snapshot, bool is_void, std::vector<uint64_t> tokens) {
    peer.send(Kind::cluster_event, wire::event_report,
              wire::encode_report({caller->identity().instance, snapshot, is_void, std::move(tokens)}));
  }
  void expect_the_call_failed() {
    ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
    EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
    EXPECT_THAT(future->message, HasSubstr("node 8 (doomed) died"));
  }

  Net net;
  std::unique_ptr<Node> caller = net.make(1);
  RawPeer keeper{net.network};  // holds the call, or says so
  RawPeer doomed{net.network};  // a node that will die
  RawPeer client{net.network};  // no node of a cluster: its death is no news
  std::shared_ptr<Future> future;
  uint64_t token = 0;
};

TEST_F(NodeSnapshots, a_call_that_nobody_holds_has_died_with_the_node) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(client, 1);
  send_marker(keeper, 1, wire::marker_from_child);
  send_report(keeper, 1, false, {token + 1});
  expect_the_call_failed();
}

TEST_F(NodeSnapshots, a_call_that_is_reported_alive_goes_on) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(client, 1);
  send_marker(keeper, 1, wire::marker_from_child);
  send_report(keeper, 1, false, {token});
  run_for(50);
  EXPECT_FALSE(future->ready.load()) << future->message;
  EXPECT_THAT(asked(keeper), ElementsAre(1u)) << "the answer was clear";
}

TEST_F(NodeSnapshots, one_failure_is_asked_about_once_while_the_answer_is_due) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  run_for(60);
  EXPECT_THAT(asked(keeper), ElementsAre(1u));
}

TEST_F(NodeSnapshots, the_failure_of_a_client_is_not_asked_about) {
  client.vanish();
  run_for(60);
  EXPECT_THAT(asked(keeper), ElementsAre());
}

TEST_F(NodeSnapshots, a_link_that_the_peer_had_not_recorded_makes_the_snapshot_void) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(client, 1);
  send_marker(keeper, 1, wire::marker_unrecorded);
  ASSERT_TRUE(is_asked(2));
  EXPECT_FALSE(future->ready.load()) << future->message;
  send_marker(client, 2);
  send_marker(keeper, 2);
  expect_the_call_failed();
}

TEST_F(NodeSnapshots, a_report_that_is_void_proves_nothing) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(client, 1);
  send_marker(keeper, 1, wire::marker_from_child);
  send_report(keeper, 1, true, {});
  ASSERT_TRUE(is_asked(2));
  EXPECT_FALSE(future->ready.load()) << future->message;
}

TEST_F(NodeSnapshots, a_link_that_is_lost_before_its_marker_makes_the_snapshot_void) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(keeper, 1);
  client.vanish();
  ASSERT_TRUE(is_asked(2)) << "else it would wait for that marker for ever";
  EXPECT_FALSE(future->ready.load()) << future->message;
  send_marker(keeper, 2);
  expect_the_call_failed();
}

TEST_F(NodeSnapshots, a_peer_that_asked_and_left_costs_the_others_nothing) {
  doomed.send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4712, 1, 0}));
  ASSERT_TRUE(run_until([&] { return keeper.find(Kind::cluster_event, wire::event_marker) != nullptr; }));
  doomed.vanish();
  const auto is_told = [&] { return keeper.find(Kind::cluster_event, wire::event_gone) != nullptr; };
  ASSERT_TRUE(run_until(is_told));
  for (auto* peer : {&keeper, &client}) {
    peer->send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4712, 1, 0}));
    run_for(2);
    EXPECT_FALSE(peer->lost.has_value());
  }
}

// ---- Ifuncs that run for too long

size_t threads_now() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

void sleep_ms(int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); }

struct NoHost final : target::IfuncHost {
  void* data(std::string_view, size_t*) noexcept override { return nullptr; }
  tc_status_t reply(ByteView) noexcept override { return TC_OK; }
  tc_status_t forward(uint32_t, ByteView) noexcept override { return TC_OK; }
  tc_status_t forward_as(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
  tc_status_t inject(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
  void fail(int32_t, std::string_view) noexcept override {}
  void log(int, std::string_view) noexcept override {}
};

struct FakeCode final : target::Code {
  explicit FakeCode(target::EntryPoint run) {
    entry = run;
    bundle = std::make_unique<Bundle>(tc::testing::four_slices());
  }
};

constexpr uint64_t limit_ns = 20'000'000;

// One executor with calls of ours, and what was reported about them.
class WatchdogOf : public ::testing::Test {
 protected:
  // How many of it may be reported rightly (run_often): none, or one.
  uint64_t run(FakeCode& code) {
    const auto before = now_ns();
    executor.begin_turn();
    dog.wake();
    {
      const target::Executor::Scope scope(executor);
      executor.run(code, nullptr, 0);
    }
    return now_ns() - before >= limit_ns ? 1 : 0;
  }
  // For a while, one call after the other. How many may have taken longer than the limit, as the machine interrupted them:
  // such a call is reported rightly, since nobody can tell it from a slow one. The watchdog sees a call begin between
  // `before` and `entered_ns`, and end when the next one begins.
  uint64_t run_often(FakeCode& code) {
    const auto until = Deadline::after_ms(300);
    uint64_t interrupted = 0, before = now_ns();
    {
      const target::Executor::Scope scope(executor);
      while (!until.passed()) {
        const auto now = now_ns();
        executor.run(code, nullptr, 0);
        if (entered_ns - before >= limit_ns) ++interrupted;
        before = now;
      }
    }
    if (now_ns() - before >= limit_ns) ++interrupted;
    return interrupted;
  }
  std::vector<std::string> reported() {
    const std::scoped_lock lock(mutex);
    return reports;
  }

  NoHost host;
  target::Executor executor{host};
  std::mutex mutex;
  std::vector<std::string> reports;
  static inline std::atomic<uint64_t> told = 0;  // reports
  // Lasts until it is reported, and longer than it takes to report it again. The watchdog's thread may have to wait for a core.
  FakeCode slow{+[](void*, size_t, void*) {
    const auto before = told.load();
    EXPECT_TRUE(tc::test::run_until([&] { return told != before; }, [] { sleep_ms(1); }));
    sleep_ms(100);
  }};
  static inline uint64_t entered_ns = 0;
  FakeCode quick{+[](void*, size_t, void*) { entered_ns = now_ns(); }};
  FakeCode brief{+[](void*, size_t, void*) {
    entered_ns = now_ns();
    sleep_ms(14);
  }};
  Watchdog dog{executor,
               {},
               20,
               [this](const std::string& ifunc, uint64_t running_ms) {
                 EXPECT_GE(running_ms, 20u);
                 const std::scoped_lock lock(mutex);
                 reports.push_back(ifunc);
                 ++told;
               },
               [](const std::string& why) { ADD_FAILURE() << why; }};
};

TEST_F(WatchdogOf, a_call_over_the_limit_is_reported_once_and_by_name) {
  dog.watch(slow);
  run(slow);
  EXPECT_THAT(reported(), ::testing::ElementsAre("golden"));
  run(slow);
  EXPECT_EQ(reported().size(), 2u) << "another call, another report";
}

TEST_F(WatchdogOf, many_quick_calls_are_no_slow_one) {
  dog.watch(quick);
  const auto interrupted = run_often(quick);
  EXPECT_LE(reported().size(), interrupted);
}

TEST_F(WatchdogOf, calls_that_each_end_within_the_limit_are_no_slow_one) {
  dog.watch(brief);
  const auto interrupted = run_often(brief);
  EXPECT_LE(reported().size(), interrupted);
}

TEST_F(WatchdogOf, an_executor_that_rests_is_not_stuck) {
  dog.watch(quick);
  const auto interrupted = run(quick);
  sleep_ms(200);
  EXPECT_LE(reported().size(), interrupted);
}

TEST_F(WatchdogOf, what_takes_long_between_calls_is_no_call) {
  const auto before = now_ns();
  const target::Executor::Scope scope(executor);
  executor.run(quick, nullptr, 0);
  const target::Executor::Pause pause(executor);
  const bool interrupted = now_ns() - before >= limit_ns;
  sleep_ms(100);
  EXPECT_LE(reported().size(), interrupted ? 1u : 0u);
}

TEST_F(WatchdogOf, it_wakes_when_calls_run_again) {
  dog.watch(slow);
  sleep_ms(200);
  run(slow);
  EXPECT_EQ(reported().size(), 1u);
}

TEST_F(WatchdogOf, code_that_was_freed_is_not_looked_at) {
  dog.watch(slow);
  dog.forget(slow);
  run(slow);
  EXPECT_THAT(reported(), ::testing::ElementsAre("?"));
}

TEST(NodeWatchdog, an_ifunc_that_is_stuck_is_counted_and_its_sender_is_free_at_its_deadline) {
  Net net;
  auto target = net.make(1, [](Config& config) { config.execution_limit_ms = 30; });
  auto source = net.make(2);
  static std::atomic<bool> is_stuck, goes_on;
  is_stuck = goes_on = false;
  target->policy().export_symbol("application_answer", reinterpret_cast<void*>(+[]() -> uint64_t {
                                   is_stuck = true;
                                   (void)tc::test::run_until([] { return goes_on.load(); }, [] { sleep_ms(1); });
                                   return 1;
                                 }));
  const Background running(*target);
  auto* link = test::connect(*source, "n1");
  // On a busy machine it may be too late when the target gets to it: then it does not run.
  for (uint32_t deadline_ms = 100; !is_stuck && deadline_ms < 10'000; deadline_ms *= 2) {
    const auto answer = test::call(*source, *link, *test::message(*source, "exported", ""), deadline_ms);
    EXPECT_EQ(answer->status, TC_ERR_TIMEOUT);
  }
  const auto stuck = [&] { return target->reports_of_stuck_calls() != 0; };
  EXPECT_TRUE(tc::test::run_until(stuck, [] { sleep_ms(1); }));
  goes_on = true;
}

TEST(NodeWatchdog, a_node_that_only_sends_has_no_watchdog_and_one_without_a_limit_neither) {
  Net net;
  auto target = net.make(1, [](Config& config) { config.execution_limit_ms = 0; });
  auto source = net.make(2);
  std::thread([] {}).join();  // a sanitizer adds its own thread to a program's first
  const auto before = threads_now();
  {
    const Background running(*target);
    test::call(*source, *test::connect(*source, "n1"), *test::message(*source, "echo", "x"));
  }
  EXPECT_TRUE(tc::test::run_until([&] { return threads_now() <= before; }, [] {})) << "one that was joined may be seen";
}

}  // namespace
}  // namespace tc::node::test
