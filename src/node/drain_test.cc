// SPDX-License-Identifier: Apache-2.0
//
// A node that drains: it refuses what comes, and what came before goes on to its end, wherever it runs or waits.
#include <atomic>
#include <condition_variable>
#include <mutex>

#include "node/testing/cell_kit.h"

namespace tc::node::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr auto refusal = "node 1 (test1) is draining: it ends, and takes no more calls";

// What the code `visit` calls: it stays until the test lets it go, when its payload begins with '!'; else `in_call` is called.
class Visits {
 public:
  Visits() { current = this; }
  ~Visits() {
    let_go();
    current = nullptr;
  }
  Visits(const Visits&) = delete;
  Visits& operator=(const Visits&) = delete;

  static uint64_t visit(const void* payload, size_t size) {
    return current->enter({static_cast<const char*>(payload), size});
  }
  void let_go() {
    const std::scoped_lock lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  int inside() {
    const std::scoped_lock lock(mutex_);
    return inside_;
  }
  int visited() {
    const std::scoped_lock lock(mutex_);
    return visited_;
  }
  std::function<void()> in_call = [] {};

 private:
  uint64_t enter(const std::string& payload) {
    in_call();
    std::unique_lock lock(mutex_);
    ++visited_;
    ++inside_;
    if (payload.starts_with('!')) changed_.wait(lock, [&] { return open_; });
    --inside_;
    return payload.size();
  }

  static inline Visits* current = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int inside_ = 0, visited_ = 0;
};

// n1 drains; n2 calls it. The test drives both.
class Drain : public ::testing::Test {
 protected:
  std::unique_ptr<Node> make_target(const Net::Adjust& adjust = {}) {
    auto node = net.make(1, adjust);
    node->policy().export_symbol("application_visit", reinterpret_cast<void*>(&Visits::visit));
    EXPECT_TRUE(gate.expose(*node));
    return node;
  }
  // In place of the one that there is.
  void make_target_anew(const Net::Adjust& adjust) {
    target.reset();
    target = make_target(adjust);
    link = connect(*source);
  }
  Link* connect(Node& from) {
    const Background running(*target);
    return test::connect(from, "n1");
  }
  std::shared_ptr<Future> send(const Bundle& bundle, std::string_view payload) {
    return source->call(*link, *test::message(*source, bundle, payload), 0, Deadline::after_ms(20'000)).value();
  }
  bool until(const std::function<bool()>& done) { return run_until({target.get(), source.get()}, done); }
  std::shared_ptr<Future> call(const Bundle& bundle, std::string_view payload) {
    auto future = send(bundle, payload);
    EXPECT_TRUE(until([&] { return future->ready.load(); }));
    return future;
  }
  void expect_refusal(const Future& future) {
    EXPECT_EQ(future.status, TC_ERR_CLOSED);
    EXPECT_THAT(future.message, HasSubstr(refusal));
  }
  // That run or wait.
  size_t calls_here() const {
    size_t calls = 0;
    target->links().each([&](Link& one) { calls += one.receiver().waiting() + one.receiver().handed_over(); });
    return calls;
  }
  bool is_drained() {
    return until([&] { return target->drain().has_value(); });
  }

  Visits visits;
  Gate gate;
  Net net;
  std::unique_ptr<Node> target = make_target();
  std::unique_ptr<Node> source = net.make(2);
  Link* link = connect(*source);
  const Bundle visit = load_bundle("visit"), echo = load_bundle("echo"), linger = load_bundle("linger");
};

TEST_F(Drain, a_new_call_is_refused_and_names_the_node) {
  ASSERT_EQ(call(echo, "x")->status, TC_OK);
  EXPECT_TRUE(is_drained());
  expect_refusal(*call(echo, "x"));
  expect_refusal(*call(visit, "with code that the node does not have"));
  EXPECT_EQ(visits.visited(), 0);
  EXPECT_EQ(target->stat("failures").value(), 0u) << "nothing is wrong";
  EXPECT_TRUE(target->drain()) << "it stays as it is";
}

TEST_F(Drain, calls_without_an_answer_are_refused_and_a_flush_says_so) {
  const auto sent = message(*source, visit, "x");
  const auto send_one = [&] { ASSERT_TRUE(source->send(*link, *sent, false, Deadline::after_ms(20'000))); };
  const auto flush = [&] {
    const Background running(*target);
    return link->flush(Deadline::after_ms(60'000));
  };
  send_one();
  ASSERT_TRUE(flush());
  EXPECT_TRUE(is_drained());
  for (int i = 0; i < 100; ++i) send_one();
  const auto flushed = flush();
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, TC_ERR_CLOSED);
  EXPECT_THAT(flushed.error().message, HasSubstr(refusal));
  EXPECT_EQ(visits.visited(), 1);
}

TEST_F(Drain, peers_can_connect_and_are_told) {
  EXPECT_TRUE(target->drain());
  link = connect(*source);
  expect_refusal(*call(echo, "x"));
  const auto asked = source->ask_statistics(*link, 0).value();
  ASSERT_TRUE(until([&] { return asked->ready.load(); }));
  EXPECT_THAT(text_of(*asked), HasSubstr("\ndraining 1\n"));
}

TEST_F(Drain, its_own_calls_are_made_and_answered) {
  EXPECT_TRUE(target->drain());
  Link* back = nullptr;
  {
    const Background running(*source);
    back = test::connect(*target, "n2");
  }
  const auto future = target->call(*back, *test::message(*target, echo, "x"), 0, Deadline::after_ms(20'000)).value();
  ASSERT_TRUE(until([&] { return future->ready.load(); }));
  EXPECT_EQ(text_of(*future), "x");
}

TEST_F(Drain, calls_on_other_threads_and_those_that_wait_for_them_go_on) {
  make_target_anew([](Config& config) { config.threads = 4; });
  std::vector<std::shared_ptr<Future>> accepted = {send(visit, "!1")};
  ASSERT_TRUE(until([&] { return visits.inside() == 1; }));
  for (int i = 2; i < 6; ++i) accepted.push_back(send(visit, "!" + std::to_string(i)));
  ASSERT_TRUE(until([&] { return calls_here() == 5; })) << "ordinary code waits for its like";
  const auto busy = target->drain();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, TC_ERR_BUSY);
  EXPECT_THAT(busy.error().message, HasSubstr("5 calls run or wait here still"));
  expect_refusal(*call(visit, "!"));
  EXPECT_FALSE(target->drain());
  visits.let_go();
  ASSERT_TRUE(until([&] { return all_ready(accepted); }));
  for (const auto& future : accepted) EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_TRUE(is_drained());
  EXPECT_EQ(visits.visited(), 5);
}

TEST_F(Drain, calls_in_cells_and_those_that_wait_for_one_go_on) {
  make_target_anew([](Config& config) { config.isolate = Isolate::all; });
  std::vector<std::shared_ptr<Future>> accepted = {send(linger, "1")};
  ASSERT_TRUE(until([&] { return gate.inside() == 1; }));
  for (int i = 2; i < 6; ++i) accepted.push_back(send(linger, std::to_string(i)));
  ASSERT_TRUE(until([&] { return calls_here() == 5; }));
  EXPECT_FALSE(target->drain());
  expect_refusal(*call(echo, "x"));
  gate.open();
  ASSERT_TRUE(until([&] { return all_ready(accepted); }));
  for (const auto& future : accepted) EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_TRUE(is_drained());
  EXPECT_EQ(target->stat("cell-calls").value(), 5u);
}

TEST_F(Drain, an_ifunc_that_runs_may_call_for_it_and_the_next_poll_takes_no_more) {
  make_target_anew([](Config& config) { config.threads = 1; });
  const auto warm = call(visit, "x");
  ASSERT_EQ(warm->status, TC_OK);
  tc_status_t said = TC_OK;
  visits.in_call = [&] {
    if (const auto drained = target->drain(); !drained) said = drained.error().code;
  };
  EXPECT_EQ(call(visit, "x")->status, TC_OK) << "it runs, and is answered";
  EXPECT_EQ(said, TC_ERR_BUSY) << "it is a call that is left";
  expect_refusal(*call(visit, "x"));
  EXPECT_TRUE(is_drained());
}

// Of three nodes: the first calls the second, whose ifunc goes on to the third.
TEST(DrainInACluster, a_forwarded_call_is_refused_and_its_caller_is_told) {
  Cluster cluster(4);
  std::vector<Node*> all;
  for (auto& node : cluster.nodes) all.push_back(node.get());
  const auto until = [&](const std::function<bool()>& done) {
    return run_until({all[0], all[1], all[2], all[3]}, done);
  };
  Link* first = nullptr;
  {
    const Background running(*all[1]);
    first = test::connect(*all[0], "n1");
  }
  const auto sent = travel(*all[0], 3);
  const auto go = [&] {
    auto future = all[0]->call(*first, *sent, 0, Deadline::after_ms(20'000)).value();
    EXPECT_TRUE(until([&] { return future->ready.load(); }));
    return future;
  };
  const auto went = go();
  ASSERT_EQ(went->status, TC_OK) << went->message;
  EXPECT_TRUE(until([&] { return all[2]->drain().has_value(); }));
  const auto refused = go();
  EXPECT_EQ(refused->status, TC_ERR_CLOSED) << refused->message;
  EXPECT_THAT(refused->message, HasSubstr("node 2 (test2) is draining"));
}

// Whatever of its ifuncs' calls to itself waits belongs to calls that were taken.
TEST(DrainInACluster, a_call_that_an_ifunc_makes_to_its_own_node_goes_on) {
  Cluster cluster(1);
  auto& node = *cluster.nodes[0];
  auto client = cluster.net.make(7);
  Link* link = nullptr;
  {
    const Background running(node);
    link = test::connect(*client, "n0");
  }
  const auto future = client->call(*link, *travel(*client, 3), 0, Deadline::after_ms(20'000)).value();
  ASSERT_TRUE(run_until({&node, client.get()}, [&] { return node.executed() != 0; }));
  (void)node.drain();
  ASSERT_TRUE(run_until({&node, client.get()}, [&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_EQ(result_of(*future).visited, 4u);
  EXPECT_TRUE(run_until({&node, client.get()}, [&] { return node.drain().has_value(); }));
}

}  // namespace
}  // namespace tc::node::test
