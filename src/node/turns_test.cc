// SPDX-License-Identifier: Apache-2.0
//
// Links share a node's time, and answers leave when their calls have ended. The clock stands still but for what calls let pass.
#include <deque>

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {
namespace {

using namespace std::chrono_literals;

// The code `exported` runs this function of ours: it takes as long as a test says, and counts.
class Turns : public ::testing::Test {
 protected:
  Turns() {
    runs = 0;
    takes = [](int) { return 20ms; };
    target->policy().export_symbol("application_answer", reinterpret_cast<void*>(+[]() -> uint64_t {
                                     const int run = runs++;
                                     if (begins) begins(run);
                                     let_pass(takes(run));
                                     return static_cast<uint64_t>(run);
                                   }));
  }
  ~Turns() override { begins = nullptr; }

  std::unique_ptr<Node> client(uint32_t id) { return net.make(id); }
  Link* connect(Node& from) {
    const Background running(*target);
    return test::connect(from, "n1");
  }
  std::vector<std::shared_ptr<Future>> call_often(Node& from, Link& link, const source::Message& message, int count) {
    std::vector<std::shared_ptr<Future>> futures;
    for (int i = 0; i < count; ++i) futures.push_back(from.call(link, message, 0, Deadline::at_ns(0)).value());
    from.poll();
    return futures;
  }
  static int ready(const std::vector<std::shared_ptr<Future>>& futures) {
    return static_cast<int>(std::ranges::count_if(futures, [](const auto& one) { return one->ready.load(); }));
  }
  // Polls the target once. How many calls it ran.
  int poll() {
    const int before = runs;
    target->poll();
    return runs - before;
  }
  // So that the target has the code, and knows what it takes.
  void warm_up(Node& from, Link& link, const source::Message& message, int calls) {
    const auto futures = call_often(from, link, message, calls);
    ASSERT_TRUE(run_until({target.get(), &from}, [&] { return ready(futures) == calls; }));
    runs = 0;
  }

  static inline int runs = 0;
  static inline std::function<std::chrono::milliseconds(int run)> takes;
  static inline std::function<void(int run)> begins;  // what a run does first
  Net net;
  std::unique_ptr<Node> target = net.make(1, [](Config& config) { config.threads = 1; });
};

TEST_F(Turns, the_answer_of_a_long_call_has_left_when_the_next_one_begins) {
  auto source = client(2);
  auto* const link = connect(*source);
  const auto message = test::message(*source, "exported", "");
  for (const int warm : {0, 1, 10}) {
    SCOPED_TRACE(warm);
    begins = nullptr;
    if (warm != 0) warm_up(*source, *link, *message, warm);
    runs = 0;
    const StoppedClock stopped;
    const auto futures = call_often(*source, *link, *message, 20);
    begins = [&](int run) {
      source->poll();
      EXPECT_EQ(ready(futures), run) << "the answers of all calls before have come";
    };
    ASSERT_TRUE(run_until({target.get(), source.get()}, [&] { return ready(futures) == 20; }));
  }
}

TEST_F(Turns, the_answers_of_short_calls_do_not_wait_behind_a_long_one) {
  auto source = client(2);
  auto* const link = connect(*source);
  const auto slow = test::message(*source, "exported", "");
  const auto quick = test::message(*source, "echo", "hello");
  warm_up(*source, *link, *slow, 1);
  warm_up(*source, *link, *quick, 100);
  const StoppedClock stopped;
  const auto before = call_often(*source, *link, *quick, 5);
  const auto long_one = call_often(*source, *link, *slow, 1);
  begins = [&](int) {
    source->poll();
    EXPECT_EQ(ready(before), 5);
  };
  EXPECT_TRUE(run_until({target.get(), source.get()}, [&] { return ready(long_one) == 1; }));
  EXPECT_EQ(runs, 1);
}

TEST_F(Turns, calls_that_are_canceled_while_another_one_runs_are_not_run) {
  auto source = client(2);
  auto* const link = connect(*source);
  const auto message = test::message(*source, "exported", "");
  for (const int warm : {0, 1, 10}) {
    SCOPED_TRACE(warm);
    begins = nullptr;
    if (warm != 0) warm_up(*source, *link, *message, warm);
    runs = 0;
    const auto failures = target->stat("failures").value(), late = source->stat("late-answers").value();
    const StoppedClock stopped;
    const auto futures = call_often(*source, *link, *message, 20);
    begins = [&](int run) {
      if (run != 0) return;
      for (size_t i = 1; i < 19; ++i) {
        source->cancel(*futures[i]);
        EXPECT_TRUE(futures[i]->ready);
        EXPECT_EQ(futures[i]->status, TC_ERR_CANCELED);
      }
      source->poll();
    };
    ASSERT_TRUE(run_until({target.get(), source.get()}, [&] { return ready(futures) == 20; }));
    EXPECT_EQ(runs, 2) << "the first, and the last";
    EXPECT_EQ(futures[0]->status, TC_OK);
    EXPECT_EQ(futures[19]->status, TC_OK);
    EXPECT_EQ(futures[1]->status, TC_ERR_CANCELED);
    EXPECT_EQ(futures[1]->message,
              "ifunc 'exported' on node 1 (test1): the call was canceled here; it may have run in part");
    EXPECT_EQ(target->stat("failures").value(), failures + 18) << "each was refused, and none forgotten";
    EXPECT_EQ(source->stat("late-answers").value(), late + 18);
  }
}

TEST_F(Turns, a_call_that_is_canceled_before_its_node_has_greeted_does_not_leave) {
  auto source = client(2);
  auto* const link = source->links().reach("n1").value();
  const auto message = test::message(*source, "exported", "");
  const auto futures = call_often(*source, *link, *message, 3);
  source->cancel(*futures[1]);
  EXPECT_EQ(futures[1]->status, TC_ERR_CANCELED);
  ASSERT_TRUE(run_until({target.get(), source.get()}, [&] { return ready(futures) == 3; }));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(futures[0]->status, TC_OK);
  EXPECT_EQ(futures[2]->status, TC_OK);
}

TEST_F(Turns, calls_that_wait_for_their_code_are_not_run_when_their_caller_cancels_them) {
  RawPeer peer(net.network);
  peer.connect("n1");
  const auto until = [&](const std::function<bool()>& done) {
    return run_until({target.get()}, [&] { return peer.progress(), done(); });
  };
  ASSERT_TRUE(until([&] { return peer.peer.has_value(); }));
  for (uint64_t token = 1; token <= 5; ++token)
    ASSERT_TRUE(peer.send(wire::Kind::call, wire::flag_call_header, 7, call_header(token)));
  for (const uint64_t token : {uint64_t{1}, uint64_t{4}, uint64_t{99}})
    ASSERT_TRUE(peer.send(wire::Kind::cancel, 0, wire::encode_cancel(token)));
  peer.flush();
  ASSERT_TRUE(until([&] { return peer.find(wire::Kind::need, 7) != nullptr; }));
  const auto bundle = load_bundle("exported");
  const auto bytes = bundle.bytes_for(bundle.carried());
  Bytes code;
  wire::append_code(code, {bundle.id(), bundle.carried(), static_cast<uint32_t>(bytes.size())}, bytes);
  ASSERT_TRUE(peer.send(wire::Kind::code, 7, code));
  peer.flush();
  ASSERT_TRUE(until([&] { return peer.reply_to(5).has_value(); }));
  EXPECT_EQ(runs, 3);
  for (uint64_t token = 1; token <= 5; ++token) {
    const auto reply = peer.reply_to(token);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->status, token == 1 || token == 4 ? TC_ERR_CANCELED : TC_OK);
  }
  EXPECT_EQ(peer.reply_to(1)->message, "node 1 (test1): its caller canceled the call before it ran");
}

TEST_F(Turns, a_call_waits_for_one_long_call_of_another_client_and_not_for_its_queue) {
  auto busy = client(2), other = client(3);
  auto* const its_link = connect(*busy);
  auto* const our_link = connect(*other);
  const auto slow = test::message(*busy, "exported", "");
  const auto quick = test::message(*other, "echo", "hello");
  warm_up(*other, *our_link, *quick, 1);
  const StoppedClock stopped;
  const auto queue = call_often(*busy, *its_link, *slow, 50);
  for (int round = 0; round < 20; ++round) {
    const int before = runs;
    const auto answer = call_often(*other, *our_link, *quick, 1);
    ASSERT_TRUE(run_until({target.get(), other.get()}, [&] { return ready(answer) == 1; }));
    EXPECT_LE(runs - before, 1);
  }
  EXPECT_TRUE(run_until({target.get(), busy.get()}, [&] { return ready(queue) == 50; })) << "what is left is not lost";
}

TEST_F(Turns, calls_that_waited_for_their_code_have_turns_like_others) {
  RawPeer peer(net.network);
  peer.connect("n1");
  ASSERT_TRUE(run_until({target.get()}, [&] { return peer.progress(), peer.peer.has_value(); }));
  const auto bundle = load_bundle("exported");
  for (uint64_t token = 1; token <= 10; ++token) {
    Bytes call(wire::call_header_bytes);
    wire::write_call_header(call.data(), {.token = token});
    ASSERT_TRUE(peer.send(wire::Kind::call, wire::flag_call_header, 7, call));
  }
  peer.flush();
  ASSERT_TRUE(run_until({target.get()}, [&] { return peer.progress(), peer.find(wire::Kind::need, 7) != nullptr; }));
  Bytes code;
  const auto carried = bundle.carried();
  const auto bytes = bundle.bytes_for(carried);
  wire::append_code(code, {bundle.id(), carried, static_cast<uint32_t>(bytes.size())}, bytes);
  const StoppedClock stopped;
  ASSERT_TRUE(peer.send(wire::Kind::code, 7, code));
  peer.flush();
  for (int polls = 0; runs < 10; ++polls) {
    ASSERT_LT(polls, 1000);
    EXPECT_LE(poll(), 1);
  }
  EXPECT_TRUE(run_until({target.get()}, [&] { return peer.progress(), peer.reply_to(10).has_value(); }));
}

TEST_F(Turns, code_that_was_short_is_measured_one_by_one_once_it_was_long) {
  auto source = client(2);
  auto* const link = connect(*source);
  const auto message = test::message(*source, "exported", "");
  takes = [](int) { return 0ms; };
  warm_up(*source, *link, *message, 3000);
  const StoppedClock stopped;
  takes = [](int run) { return run % 10 == 0 ? 20ms : 0ms; };
  const auto futures = call_often(*source, *link, *message, 900);
  int most_late = 0;
  for (int polls = 0; ready(futures) != 900; ++polls) {
    ASSERT_LT(polls, 10'000);
    const int ran = poll();
    if (runs - ran > 600) most_late = std::max(most_late, ran);  // the first 512 may have run as short ones
    source->poll();
  }
  EXPECT_LE(most_late, 21) << "a turn ends with a long call, or soon after";
}

// Many of which run in a row.
TEST_F(Turns, calls_without_an_answer_are_measured_like_others) {
  auto source = client(2);
  auto* const link = connect(*source);
  const auto message = test::message(*source, "exported", "");
  const StoppedClock stopped;
  takes = [](int) { return 0ms; };
  warm_up(*source, *link, *message, 1);
  for (int i = 0; i < 3000; ++i) ASSERT_TRUE(source->send(*link, *message, false, Deadline::at_ns(0)));
  ASSERT_TRUE(run_until({target.get(), source.get()}, [&] { return runs == 3000; }));
  EXPECT_GT(target->store().find(load_bundle("exported").id())->calls_a_look, 16) << "they are known to be short";
}

}  // namespace
}  // namespace tc::node::test
