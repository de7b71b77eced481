// SPDX-License-Identifier: Apache-2.0
//
// A node with several threads: what runs beside what, what waits, and what becomes of a call on another thread when something
// happens to its link, its code, its data or its node.
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <set>

#include "node/testing/node_test_kit.h"

namespace tc::node::test {
namespace {

using namespace std::chrono_literals;

// The same code, which may run beside other code.
Bundle concurrent(const Bundle& bundle) {
  auto manifest = bundle.manifest();
  manifest.entries |= entry_concurrent;
  std::vector<Bytes> stored;
  for (size_t i = 0; i < manifest.slices.size(); ++i)
    stored.emplace_back(bundle.stored(i).begin(), bundle.stored(i).end());
  return Bundle::pack(std::move(manifest), std::move(stored)).value();
}

// What the code `visit` calls. A call whose payload begins with '!' stays until the test lets it go.
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
  bool wait_for_inside(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] { return inside_ >= count; });
  }
  int inside() {
    const std::scoped_lock lock(mutex_);
    return inside_;
  }
  int most_inside() {
    const std::scoped_lock lock(mutex_);
    return most_;
  }
  std::vector<std::string> order() {
    const std::scoped_lock lock(mutex_);
    return order_;
  }
  bool was_on(std::thread::id thread) {
    const std::scoped_lock lock(mutex_);
    return threads_.contains(thread);
  }
  size_t threads() {
    const std::scoped_lock lock(mutex_);
    return threads_.size();
  }

 private:
  uint64_t enter(const std::string& payload) {
    std::unique_lock lock(mutex_);
    threads_.insert(std::this_thread::get_id());
    order_.push_back(payload);
    most_ = std::max(most_, ++inside_);
    changed_.notify_all();
    if (payload.starts_with('!')) changed_.wait(lock, [&] { return open_; });
    lock.unlock();
    if (payload.starts_with('~')) std::this_thread::sleep_for(200us);  // long enough to be handed over
    if (payload.starts_with('^')) std::this_thread::sleep_for(50ms);
    lock.lock();
    --inside_;
    return payload.size();
  }

  static inline Visits* current = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int inside_ = 0, most_ = 0;
  std::vector<std::string> order_;
  std::set<std::thread::id> threads_;
};

class Workers : public ::testing::Test {
 protected:
  std::unique_ptr<Node> make_target(const Net::Adjust& adjust = {}) {
    auto node = net.make(1, [&](Config& config) {
      config.threads = 3;
      if (adjust) adjust(config);
    });
    node->policy().export_symbol("application_visit", reinterpret_cast<void*>(&Visits::visit));
    return node;
  }
  Link* connect(Node& from) {
    const Background running(*target);
    return test::connect(from, "n1");
  }
  std::shared_ptr<Future> send(Node& from, Link& link, const Bundle& bundle, std::string_view payload,
                               uint32_t answer_ms = 0) {
    return from.call(link, *test::message(from, bundle, payload), answer_ms, Deadline::after_ms(20'000)).value();
  }
  bool until(Node& client, const std::function<bool()>& done) { return run_until({target.get(), &client}, done); }
  bool until(const std::function<bool()>& done) { return until(*source, done); }
  bool answered(const std::shared_ptr<Future>& future) {
    return until([&] { return future->ready.load(); }) && future->status == TC_OK;
  }
  // Runs there until it is let go.
  std::shared_ptr<Future> send_one_that_stays(const Bundle& bundle, std::string_view payload = "!") {
    const int before = visits.inside();
    auto future = send(*source, *link, bundle, payload);
    EXPECT_TRUE(until([&] { return visits.inside() == before + 1; }));
    return future;
  }
  // So that it is short, as far as the target knows.
  void make_short(const Bundle& bundle) {
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(answered(send(*source, *link, bundle, "x")));
  }

  Visits visits;
  Net net;
  std::unique_ptr<Node> target = make_target();
  std::unique_ptr<Node> source = net.make(2);
  Link* link = connect(*source);
  const Bundle ordinary = load_bundle("visit");
  const Bundle beside = concurrent(load_bundle("visit"));
  const Bundle echo = load_bundle("echo");
};

// ---- What runs beside what

TEST_F(Workers, while_a_call_never_ends_others_connect_and_concurrent_code_is_served) {
  const auto endless = send_one_that_stays(ordinary);
  EXPECT_EQ(target->running_ifunc(), "visit");
  auto other = net.make(3);
  auto* const its_link = connect(*other);
  const auto answer = send(*other, *its_link, concurrent(echo), "hello");
  ASSERT_TRUE(until(*other, [&] { return answer->ready.load(); }));
  EXPECT_EQ(text_of(*answer), "hello");
  const auto late = send(*other, *its_link, ordinary, "x", 1000);
  test::let_pass(2s);
  ASSERT_TRUE(until(*other, [&] { return late->ready.load(); }));
  EXPECT_EQ(late->status, TC_ERR_TIMEOUT) << "the deadline of its caller";
  EXPECT_FALSE(endless->ready.load());
  visits.let_go();
  EXPECT_TRUE(answered(endless));
}

TEST_F(Workers, ordinary_code_waits_for_ordinary_code_though_it_is_short) {
  make_short(echo);
  const auto first = send_one_that_stays(ordinary);
  const auto second = send(*source, *link, echo, "after it");
  for (int polls = 0; polls < 200; ++polls) target->poll(), source->poll();
  EXPECT_FALSE(second->ready.load());
  visits.let_go();
  EXPECT_TRUE(answered(first));
  EXPECT_TRUE(answered(second));
  EXPECT_EQ(text_of(*second), "after it");
}

TEST_F(Workers, ordinary_code_runs_beside_concurrent_code) {
  const auto beside_it = send_one_that_stays(beside);
  EXPECT_TRUE(answered(send(*source, *link, ordinary, "x")));
  EXPECT_FALSE(beside_it->ready.load());
  visits.let_go();
  EXPECT_TRUE(answered(beside_it));
}

TEST_F(Workers, concurrent_calls_of_one_link_run_at_the_same_time) {
  const auto one = send_one_that_stays(beside);
  const auto two = send_one_that_stays(beside);
  EXPECT_EQ(visits.inside(), 2);
  EXPECT_EQ(visits.threads(), 2u);
  const auto third = send(*source, *link, beside, "no thread is left for it");
  for (int polls = 0; polls < 200; ++polls) target->poll(), source->poll();
  EXPECT_EQ(visits.inside(), 2);
  visits.let_go();
  for (const auto& future : {one, two, third}) EXPECT_TRUE(answered(future));
}

TEST_F(Workers, a_mix_of_clients_and_code_never_runs_ordinary_code_twice_at_once_and_keeps_its_order) {
  constexpr int clients = 3, calls = 300;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<Link*> links;
  for (uint32_t i = 0; i < clients; ++i) {
    nodes.push_back(net.make(10 + i));
    links.push_back(connect(*nodes.back()));
  }
  std::mt19937 random(41);
  std::vector<std::shared_ptr<Future>> futures;
  std::vector<std::vector<std::string>> sent(clients);
  const auto quick = concurrent(echo);
  const Background running(*target);
  for (int i = 0; i < calls; ++i)
    for (int client = 0; client < clients; ++client) {
      const auto kind = random() % 4;
      const auto payload = fmt::format("{}{}/{}", kind == 0 ? '~' : '=', client, i);
      auto& node = *nodes[static_cast<size_t>(client)];
      futures.push_back(send(node, *links[static_cast<size_t>(client)], kind == 3 ? quick : ordinary, payload));
      if (kind != 3) sent[static_cast<size_t>(client)].push_back(payload);
      if (random() % 8 == 0) node.poll();
    }
  ASSERT_TRUE(tc::test::run_until([&] { return all_ready(futures); },
                                  [&] {
                                    for (auto& node : nodes) node->poll();
                                  },
                                  60'000));
  for (const auto& future : futures) EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_EQ(visits.most_inside(), 1);
  std::vector<std::vector<std::string>> ran(clients);
  for (const auto& payload : visits.order()) ran[static_cast<size_t>(payload[1] - '0')].push_back(payload);
  EXPECT_EQ(ran, sent);
}

TEST_F(Workers, links_take_turns_when_they_wait_for_a_thread) {
  auto other = net.make(3);
  auto* const its_link = connect(*other);
  std::vector<std::shared_ptr<Future>> queue;
  const auto first = send_one_that_stays(ordinary);
  for (int i = 0; i < 50; ++i) queue.push_back(send(*source, *link, ordinary, "~queue"));
  for (int polls = 0; polls < 200; ++polls) target->poll(), source->poll();
  const auto theirs = send(*other, *its_link, ordinary, "other");
  for (int polls = 0; polls < 200; ++polls) target->poll(), other->poll();
  visits.let_go();
  ASSERT_TRUE(until(*other, [&] { return theirs->ready.load(); }));
  const auto order = visits.order();
  const auto place = std::ranges::find(order, "other") - order.begin();
  EXPECT_LE(place, 2) << "behind the first call and one of the queue";
  for (const auto& future : queue) EXPECT_TRUE(answered(future));
}

TEST_F(Workers, concurrent_calls_that_keep_coming_let_ordinary_code_have_a_thread) {
  ASSERT_TRUE(answered(send(*source, *link, ordinary, "^")));  // now it is long, as far as the target knows
  auto other = net.make(3);
  auto* const its_link = connect(*other);
  constexpr int on_threads = 16;  // or behind them
  std::vector<std::shared_ptr<Future>> queue;
  for (int i = 0; i < on_threads; ++i) queue.push_back(send(*source, *link, beside, "!"));
  for (int i = 0; i < 200; ++i) queue.push_back(send(*source, *link, beside, "~queue"));
  for (int polls = 0; polls < 200; ++polls) target->poll(), source->poll();
  const auto theirs = send(*other, *its_link, ordinary, "other");
  for (int polls = 0; polls < 200; ++polls) target->poll(), other->poll();
  visits.let_go();
  ASSERT_TRUE(until(*other, [&] { return theirs->ready.load(); }));
  const auto order = visits.order();
  const auto place = std::ranges::find(order, "other") - order.begin();
  EXPECT_LE(place, 3 * on_threads) << "behind those that were there, and a turn of the queue";
  for (const auto& future : queue) EXPECT_TRUE(answered(future));
}

TEST_F(Workers, code_that_was_long_runs_on_other_threads_until_it_was_short_for_a_while) {
  ASSERT_TRUE(answered(send(*source, *link, ordinary, "^")));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(answered(send(*source, *link, ordinary, "x")));
  const auto main_thread = std::this_thread::get_id();
  EXPECT_FALSE(visits.was_on(main_thread));
  for (int i = 0; i < 10'000 && !visits.was_on(main_thread); ++i)
    ASSERT_TRUE(answered(send(*source, *link, ordinary, "x")));
  EXPECT_TRUE(visits.was_on(main_thread));
}

TEST_F(Workers, calls_on_other_threads_are_counted_once_and_measured) {
  const auto stays = send_one_that_stays(ordinary);
  const auto waits = send(*source, *link, ordinary, "x");
  EXPECT_TRUE(until([&] { return target->stat("waiting-calls").value() == 1; }));
  visits.let_go();
  ASSERT_TRUE(answered(stays) && answered(waits));
  const auto all_ended = [&] {
    const auto ifuncs = target->report().ifuncs;
    return ifuncs.size() == 1 && ifuncs[0].calls == 2 && ifuncs[0].latency.count() != 0;
  };
  EXPECT_TRUE(until(all_ended));
  const auto use = target->report().ifuncs[0];
  EXPECT_EQ(use.name, "visit");
  EXPECT_EQ(use.failures, 0u);
  EXPECT_EQ(use.run.count(), use.latency.count());
  EXPECT_GE(use.latency.sum_ns, use.run.sum_ns);
  EXPECT_EQ(target->stat("waiting-calls").value(), 0u);
}

TEST_F(Workers, a_flush_waits_for_calls_on_other_threads) {
  ASSERT_TRUE(source->send(*link, *test::message(*source, ordinary, "!"), false, Deadline::after_ms(20'000)));
  ASSERT_TRUE(until([&] { return visits.inside() == 1; }));
  const Background running(*target);
  EXPECT_EQ(link->flush(Deadline::after_ms(50)).error().code, TC_ERR_TIMEOUT);
  visits.let_go();
  EXPECT_TRUE(link->flush(Deadline::after_ms(60'000)));
}

TEST_F(Workers, a_link_is_not_read_while_a_mebibyte_of_its_calls_waits_and_nothing_is_lost) {
  const auto first = send_one_that_stays(ordinary);
  const std::string payload(16 * 1024, '=');
  std::vector<std::shared_ptr<Future>> futures;
  const auto message = test::message(*source, ordinary, payload);
  for (int i = 0; i < 400; ++i) {
    auto future = source->call(*link, *message, 0, Deadline::after_ms(1));
    target->poll();
    if (!future) break;
    futures.push_back(*future);
  }
  EXPECT_GT(futures.size(), 60u) << "a mebibyte waits at the target";
  for (int polls = 0; polls < 1000; ++polls) target->poll(), source->poll();
  EXPECT_EQ(visits.order().size(), 1u);
  visits.let_go();
  EXPECT_TRUE(answered(first));
  for (const auto& future : futures) EXPECT_TRUE(answered(future)) << future->message;
}

// ---- What a call on another thread asks of its node

TEST_F(Workers, a_call_travels_on_from_another_thread_and_its_answer_comes_from_the_last_node) {
  Cluster cluster(3, [](Config& config) { config.threads = 3; });
  auto client = cluster.net.make(9);
  cluster.start();
  auto* const first = test::connect(*client, "n0");
  for (const bool is_concurrent : {false, true}) {
    const auto bundle = is_concurrent ? concurrent(load_bundle("travel")) : load_bundle("travel");
    const auto future = test::call(*client, *first, *travel(*client, bundle, 10));
    ASSERT_EQ(future->status, TC_OK) << future->message;
    EXPECT_EQ(result_of(*future).visited, 11u);
  }
}

TEST_F(Workers, a_failure_on_another_thread_names_the_ifunc_and_the_node) {
  const auto future = send(*source, *link, concurrent(load_bundle("refuse")), "x");
  ASSERT_TRUE(until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_IFUNC);
  EXPECT_THAT(future->message, testing::AllOf(testing::HasSubstr("node 1 (test1)"), testing::HasSubstr("'refuse'")));
}

// ---- What may happen meanwhile

TEST_F(Workers, the_code_of_a_call_that_runs_may_be_freed) {
  const auto future = send_one_that_stays(beside);
  target->store().evict(beside.id());
  EXPECT_EQ(target->stat("codes").value(), 0u);
  const auto again = send(*source, *link, beside, "x");  // loads it anew
  EXPECT_TRUE(answered(again));
  visits.let_go();
  EXPECT_TRUE(answered(future));
  EXPECT_EQ(target->stat("codes").value(), 1u);
}

TEST_F(Workers, a_caller_may_go_while_its_call_runs) {
  const auto future = send_one_that_stays(ordinary);
  source.reset();
  for (int polls = 0; polls < 200; ++polls) target->poll();
  visits.let_go();
  ASSERT_TRUE(run_until({target.get()}, [&] { return target->executed() == 1 && target->links().size() == 0; }));
  source = net.make(3);
  link = connect(*source);
  EXPECT_TRUE(answered(send(*source, *link, ordinary, "x"))) << "ordinary code runs again";
}

TEST_F(Workers, a_node_that_ends_waits_for_the_call_that_runs_and_drops_those_that_have_not_begun) {
  const auto runs = send_one_that_stays(ordinary);
  const auto waits = send(*source, *link, ordinary, "waits");
  for (int polls = 0; polls < 200; ++polls) target->poll(), source->poll();
  std::jthread let_go([&] {
    std::this_thread::sleep_for(20ms);
    visits.let_go();
  });
  target.reset();
  EXPECT_EQ(visits.inside(), 0);
  ASSERT_TRUE(run_until({source.get()}, [&] { return runs->ready.load() && waits->ready.load(); }));
  EXPECT_EQ(runs->status, TC_OK) << runs->message;
  EXPECT_EQ(waits->status, TC_ERR_DISCONNECTED) << waits->message;
}

TEST_F(Workers, data_that_is_withdrawn_is_waited_for) {
  uint64_t number = 7;
  ASSERT_TRUE(target->expose("number", &number, sizeof number));
  const auto future = send_one_that_stays(beside);
  ASSERT_TRUE(target->expose("other", &number, sizeof number)) << "nobody has that";
  std::jthread let_go([&] {
    std::this_thread::sleep_for(20ms);
    visits.let_go();
  });
  EXPECT_TRUE(target->expose("number", nullptr, 0));
  EXPECT_EQ(visits.inside(), 0) << "no call has it any more";
  EXPECT_TRUE(answered(future));
}

TEST_F(Workers, data_that_a_call_keeps_for_too_long_is_withdrawn_with_a_word) {
  uint64_t number = 7;
  ASSERT_TRUE(target->expose("number", &number, sizeof number));
  const auto future = send_one_that_stays(beside);
  std::jthread passes([&] {
    std::this_thread::sleep_for(20ms);
    test::let_pass(20s);
  });
  const auto withdrawn = target->expose("number", nullptr, 0);
  ASSERT_FALSE(withdrawn);
  EXPECT_EQ(withdrawn.error().code, TC_ERR_BUSY);
  std::jthread again([&] {
    std::this_thread::sleep_for(20ms);
    test::let_pass(20s);
  });
  EXPECT_FALSE(target->expose("number", nullptr, 0)) << "it still has it";
  visits.let_go();
  EXPECT_TRUE(answered(future));
  EXPECT_TRUE(target->expose("number", nullptr, 0));
}

TEST_F(Workers, a_call_that_runs_for_too_long_is_reported_by_name) {
  std::atomic<bool> told = false;
  source.reset();
  target.reset();
  target = make_target([&](Config& config) {
    config.execution_limit_ms = 20;
    config.log = "error";
    config.log_sink = [&](int, const char* line) {
      if (std::string_view(line).find("'visit' has been running") != std::string_view::npos) told = true;
    };
  });
  source = net.make(3);
  link = connect(*source);
  const auto future = send_one_that_stays(ordinary);
  ASSERT_TRUE(until([&] { return told.load(); }));
  EXPECT_GE(target->reports_of_stuck_calls(), 1u);
  visits.let_go();
  EXPECT_TRUE(answered(future));
}

}  // namespace
}  // namespace tc::node::test
