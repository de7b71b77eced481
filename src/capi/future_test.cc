// SPDX-License-Identifier: Apache-2.0
//
// How a program learns that a call has ended: by a future, or in its own event loop. The end of a wait and the end of a
// call are two things.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <time.h>

#include <atomic>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/testing/run_until.h"
#include "capi/handles.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using test::Served;
using ::testing::HasSubstr;

// What a function given to tc_future_on_ready() notes.
struct Told {
  std::atomic<int> times{0};
  tc_status_t status = TC_ERR_INTERNAL;
  std::thread::id thread;
  static void note(tc_future_t* future, void* context) {
    auto& told = *static_cast<Told*>(context);
    told.status = tc_future_status(future);
    told.thread = std::this_thread::get_id();
    ++told.times;
  }
};

class FutureApi : public testing::Test {
 protected:
  FutureApi() : to_target(source.connect(target)) {
    EXPECT_EQ(tc_node_start_progress(mute.handle), TC_OK);
    to_mute = source.connect(mute);
    EXPECT_EQ(tc_node_stop_progress(mute.handle), TC_OK);
  }
  Served target;
  Node mute;  // whom nobody drives
  Node source;
  tc_endpoint_t* to_target;
  tc_endpoint_t* to_mute = nullptr;
};

TEST_F(FutureApi, a_wait_ends_well_when_the_call_ended_however_that_was) {
  auto* const good = source.call(to_target, "echo", "hello");
  auto* const bad = source.call(to_target, "refuse", "no");
  EXPECT_EQ(tc_future_wait(good, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(good), TC_OK);
  EXPECT_EQ(tc_future_wait(bad, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(bad), TC_ERR_IFUNC);
  EXPECT_STREQ(tc_error_message(), tc_future_error(bad));
  tc_future_free(good);
  tc_future_free(bad);
}

TEST_F(FutureApi, a_wait_that_ends_too_early_is_a_timeout_and_there_is_no_status_yet) {
  auto* const future = source.call(to_mute, "echo");
  EXPECT_EQ(tc_future_wait(future, 0), TC_ERR_TIMEOUT);
  EXPECT_EQ(tc_future_wait(future, 5), TC_ERR_TIMEOUT);
  EXPECT_EQ(tc_future_ready(future), 0);
  EXPECT_EQ(tc_future_status(future), TC_ERR_INVALID);
  EXPECT_THAT(tc_error_message(), HasSubstr("not ready"));
  tc_future_free(future);
}

TEST_F(FutureApi, a_call_whose_own_deadline_passed_is_ready) {
  auto* const future = source.call(to_mute, "echo", "", 20);
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(future), TC_ERR_TIMEOUT);
  tc_future_free(future);
}

TEST(Future, a_call_that_ended_busy_does_not_look_unfinished) {
  auto ended = std::make_shared<node::Future>();
  ended->status = TC_ERR_BUSY;
  ended->message = "the target has no room";
  ended->ready = true;
  tc_future_t future{nullptr, ended};
  EXPECT_EQ(tc_future_wait(&future, 0), TC_OK);
  EXPECT_EQ(tc_future_ready(&future), 1);
  EXPECT_EQ(tc_future_status(&future), TC_ERR_BUSY);
  EXPECT_STREQ(tc_error_message(), "the target has no room");
}

TEST_F(FutureApi, a_function_is_called_once_on_the_thread_that_polls_when_the_answer_is_there) {
  Told told;
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Told::note, &told), TC_OK);
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.status, TC_OK);
  EXPECT_EQ(told.thread, std::this_thread::get_id());
  for (int i = 0; i < 100; ++i) tc_node_poll(source.handle, nullptr);
  tc_future_free(future);
  EXPECT_EQ(told.times, 1);
}

TEST_F(FutureApi, a_function_for_a_future_that_is_ready_is_called_at_once_and_a_second_one_refused) {
  auto* const future = source.call(to_target, "echo");
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  Told told;
  EXPECT_EQ(tc_future_on_ready(future, Told::note, &told), TC_OK);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(tc_future_on_ready(future, Told::note, &told), TC_ERR_INVALID);
  EXPECT_EQ(told.times, 1);
  tc_future_free(future);
}

TEST_F(FutureApi, a_deadline_that_passes_is_told_too) {
  Told told;
  auto* const future = source.call(to_mute, "echo", "", 20);
  ASSERT_EQ(tc_future_on_ready(future, Told::note, &told), TC_OK);
  for (const auto deadline = Deadline::after_ms(10'000); told.times == 0 && !deadline.passed();)
    tc_node_wait(source.handle, 100, nullptr);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.status, TC_ERR_TIMEOUT);
  tc_future_free(future);
}

TEST_F(FutureApi, a_call_that_is_canceled_is_ready_at_once_and_whoever_wants_to_know_is_told) {
  Told told;
  auto* const future = source.call(to_mute, "echo", "x");
  ASSERT_EQ(tc_future_on_ready(future, Told::note, &told), TC_OK);
  EXPECT_EQ(tc_future_cancel(future), TC_OK);
  EXPECT_EQ(tc_future_ready(future), 1);
  EXPECT_EQ(tc_future_status(future), TC_ERR_CANCELED);
  EXPECT_THAT(tc_future_error(future), HasSubstr("the call was canceled here; it may have run in part"));
  EXPECT_EQ(tc_future_wait(future, 0), TC_OK);
  EXPECT_EQ(tc_future_bytes(future, nullptr), nullptr);
  EXPECT_EQ(told.times, 0) << "polling tells";
  EXPECT_EQ(tc_node_poll(source.handle, nullptr), TC_OK);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.status, TC_ERR_CANCELED);
  EXPECT_EQ(tc_future_cancel(future), TC_OK) << "it stays as it is";
  EXPECT_EQ(told.times, 1);
  tc_future_free(future);
  EXPECT_EQ(tc_future_cancel(nullptr), TC_ERR_INVALID);
}

TEST_F(FutureApi, an_answer_that_was_there_first_is_not_canceled) {
  auto* const future = source.call(to_target, "echo", "hello");
  ASSERT_EQ(tc_future_wait(future, 20'000), TC_OK);
  EXPECT_EQ(tc_future_cancel(future), TC_OK);
  EXPECT_EQ(tc_future_status(future), TC_OK);
  tc_future_free(future);
}

TEST_F(FutureApi, nobody_is_told_of_a_future_that_was_freed) {
  Told told;
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Told::note, &told), TC_OK);
  tc_future_free(future);
  EXPECT_EQ(tc_endpoint_flush(to_target, 10'000), TC_OK);
  for (int i = 0; i < 100; ++i) tc_node_poll(source.handle, nullptr);
  EXPECT_EQ(told.times, 0);
}

TEST_F(FutureApi, the_progress_thread_tells_and_whoever_frees_meanwhile_waits_for_the_end_of_it) {
  struct Slow {
    std::atomic<bool> begun{false}, ended{false};
    static void take_time(tc_future_t*, void* context) {
      auto& slow = *static_cast<Slow*>(context);
      slow.begun = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      slow.ended = true;
    }
  } slow;
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Slow::take_time, &slow), TC_OK);
  ASSERT_EQ(tc_node_start_progress(source.handle), TC_OK);
  for (const auto deadline = Deadline::after_ms(10'000); !slow.begun && !deadline.passed();) std::this_thread::yield();
  tc_future_free(future);
  EXPECT_TRUE(slow.ended);
}

TEST_F(FutureApi, a_function_may_call_on_and_free_its_future_but_not_wait) {
  struct Chain {
    const Node& source;
    tc_endpoint_t* to;
    int left;
    tc_status_t waited = TC_OK, flushed = TC_OK;
    static void next(tc_future_t* future, void* context) {
      auto& chain = *static_cast<Chain*>(context);
      tc_future_free(future);
      if (--chain.left == 0) return;
      auto* const another = chain.source.call(chain.to, "echo");
      chain.waited = tc_future_wait(another, 10);
      chain.flushed = tc_endpoint_flush(chain.to, 10);
      EXPECT_EQ(tc_future_on_ready(another, next, context), TC_OK);
    }
  } chain{source, to_target, 20};
  ASSERT_EQ(tc_future_on_ready(source.call(to_target, "echo"), Chain::next, &chain), TC_OK);
  for (const auto deadline = Deadline::after_ms(10'000); chain.left != 0 && !deadline.passed();)
    tc_node_wait(source.handle, 100, nullptr);
  EXPECT_EQ(chain.left, 0);
  EXPECT_EQ(chain.waited, TC_ERR_INVALID);
  EXPECT_EQ(chain.flushed, TC_ERR_INVALID);
}

// It sends, and closes its endpoint, in a function that is called when a future is ready.
struct Farewell {
  tc_endpoint_t* endpoint;
  tc_message_t* last = nullptr;
  tc_status_t sent = TC_ERR_INTERNAL, closed = TC_ERR_INTERNAL;
  std::atomic<bool> done{false};
  static void say(tc_future_t*, void* context) {
    auto& farewell = *static_cast<Farewell*>(context);
    farewell.sent = tc_endpoint_send(farewell.endpoint, farewell.last);
    farewell.closed = tc_endpoint_free(farewell.endpoint, 10'000);
    farewell.done = true;
  }
};

bool wait_for_number(const Node& node, const char* name, uint64_t wanted) {
  for (const auto deadline = Deadline::after_ms(20'000); !deadline.passed(); tc_node_wait(node.handle, 5, nullptr))
    if (test::number_of(node, name) == wanted) return true;
  return test::number_of(node, name) == wanted;
}

TEST_F(FutureApi, a_function_may_close_an_endpoint_and_what_it_sent_before_runs) {
  Farewell farewell{to_target};
  tc_ifunc_t* echo = nullptr;
  ASSERT_EQ(tc_ifunc_register(source.handle, "echo", &echo), TC_OK);
  ASSERT_EQ(tc_message_create(echo, "x", 1, &farewell.last), TC_OK);
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Farewell::say, &farewell), TC_OK);
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  EXPECT_TRUE(farewell.done);
  EXPECT_EQ(farewell.sent, TC_OK);
  EXPECT_EQ(farewell.closed, TC_OK);
  EXPECT_TRUE(wait_for_number(source, "links", 1)) << "the one to the mute node";
  EXPECT_TRUE(wait_for_number(target, "executed", 2));
  EXPECT_TRUE(wait_for_number(target, "links", 0));
  tc_message_free(farewell.last);
  tc_future_free(future);
}

TEST_F(FutureApi, the_progress_thread_may_close_an_endpoint_in_a_function_that_it_calls) {
  Farewell farewell{to_target};
  tc_ifunc_t* echo = nullptr;
  ASSERT_EQ(tc_ifunc_register(source.handle, "echo", &echo), TC_OK);
  ASSERT_EQ(tc_message_create(echo, "x", 1, &farewell.last), TC_OK);
  ASSERT_EQ(tc_node_start_progress(source.handle), TC_OK);
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Farewell::say, &farewell), TC_OK);
  for (const auto deadline = Deadline::after_ms(20'000); !farewell.done && !deadline.passed();)
    std::this_thread::yield();
  EXPECT_EQ(farewell.closed, TC_OK);
  EXPECT_TRUE(wait_for_number(source, "links", 1)) << "the one to the mute node";
  EXPECT_TRUE(wait_for_number(target, "executed", 2));
  tc_future_free(future);
  tc_message_free(farewell.last);
}

// An endpoint of C++ ends with its scope, which may be a function that a future calls.
TEST_F(FutureApi, an_endpoint_may_be_closed_while_its_own_flush_waits) {
  Farewell farewell{to_target};
  tc_ifunc_t* echo = nullptr;
  ASSERT_EQ(tc_ifunc_register(source.handle, "echo", &echo), TC_OK);
  ASSERT_EQ(tc_message_create(echo, "x", 1, &farewell.last), TC_OK);
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Farewell::say, &farewell), TC_OK);
  (void)tc_endpoint_flush(to_target, 10'000);
  EXPECT_TRUE(farewell.done);
  EXPECT_TRUE(wait_for_number(source, "links", 1));
  tc_future_free(future);
  tc_message_free(farewell.last);
}

TEST_F(FutureApi, an_endpoint_that_is_closed_in_a_function_while_its_peer_is_mute_ends_in_time) {
  struct Leaving {
    tc_endpoint_t* endpoint;
    tc_status_t closed = TC_ERR_INTERNAL;
    static void leave(tc_future_t*, void* context) {
      auto& leaving = *static_cast<Leaving*>(context);
      leaving.closed = tc_endpoint_free(leaving.endpoint, 20);
    }
  } leaving{to_mute};
  auto* const unanswered = source.call(to_mute, "echo", "", 0);
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Leaving::leave, &leaving), TC_OK);
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  EXPECT_EQ(leaving.closed, TC_OK);
  EXPECT_EQ(tc_future_wait(unanswered, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(unanswered), TC_ERR_CLOSED);
  tc_future_free(unanswered);
  tc_future_free(future);
}

// It destroys its node: the last owner of a node in C++ may be what a function has captured.
struct Ending {
  tc_node_t* node;
  std::atomic<bool> done{false};
  static void destroy(tc_future_t*, void* context) {
    auto& ending = *static_cast<Ending*>(context);
    tc_node_free(ending.node);
    ending.done = true;
  }
};

TEST_F(FutureApi, a_function_may_destroy_its_node) {
  Ending ending{source.handle};
  auto* const unanswered = source.call(to_mute, "echo", "", 0);
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Ending::destroy, &ending), TC_OK);
  Told told;
  ASSERT_EQ(tc_future_on_ready(unanswered, Told::note, &told), TC_OK);
  while (!ending.done) tc_node_poll(source.handle, nullptr);
  source.handle = nullptr;
  EXPECT_EQ(tc_future_status(future), TC_OK);
  EXPECT_EQ(told.times, 1);
  EXPECT_EQ(told.status, TC_ERR_CLOSED);
  EXPECT_TRUE(wait_for_number(target, "links", 0));
  tc_future_free(future);
  tc_future_free(unanswered);
}

TEST_F(FutureApi, a_function_may_destroy_its_node_while_the_program_waits_for_an_answer) {
  Ending ending{source.handle};
  auto* const unanswered = source.call(to_mute, "echo", "", 0);
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Ending::destroy, &ending), TC_OK);
  EXPECT_EQ(tc_future_wait(unanswered, 60'000), TC_OK);
  source.handle = nullptr;
  EXPECT_TRUE(ending.done);
  EXPECT_EQ(tc_future_status(unanswered), TC_ERR_CLOSED);
  EXPECT_TRUE(wait_for_number(target, "links", 0));
  tc_future_free(future);
  tc_future_free(unanswered);
}

TEST_F(FutureApi, the_progress_thread_may_destroy_its_node_in_a_function_that_it_calls) {
  Ending ending{source.handle};
  auto* const future = source.call(to_target, "echo");
  ASSERT_EQ(tc_future_on_ready(future, Ending::destroy, &ending), TC_OK);
  ASSERT_EQ(tc_node_start_progress(source.handle), TC_OK);
  while (!ending.done) std::this_thread::yield();
  source.handle = nullptr;
  EXPECT_EQ(tc_future_status(future), TC_OK);
  EXPECT_TRUE(wait_for_number(target, "links", 0));
  tc_future_free(future);
}

size_t threads_of_this_process() {
  const std::filesystem::directory_iterator threads("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(threads), end(threads)));
}

// The progress thread ends the node when the call has ended.
TEST(ANodeOfTwoThreads, may_be_destroyed_by_a_call_on_its_other_thread) {
  const size_t threads_before = threads_of_this_process();
  auto source = std::make_unique<Node>();
  Node target({{"transport", "tcp"}, {"threads", "2"}});
  static std::atomic<tc_node_t*> doomed;
  doomed = target.handle;
  const auto destroy = +[]() -> uint64_t {
    tc_node_free(doomed);
    return 4711;
  };
  ASSERT_EQ(tc_node_export(target.handle, "application_answer", reinterpret_cast<void*>(destroy)), TC_OK);
  ASSERT_EQ(tc_node_start_progress(target.handle), TC_OK);
  auto* const endpoint = source->connect(target);
  auto* const future = source->call(endpoint, "exported");
  target.handle = nullptr;
  EXPECT_EQ(tc_future_wait(future, 20'000), TC_OK);
  EXPECT_EQ(tc_future_status(future), TC_OK);
  tc_future_free(future);
  for (const auto deadline = Deadline::after_ms(20'000); tc_endpoint_status(endpoint) == TC_OK && !deadline.passed();)
    tc_node_wait(source->handle, 100, nullptr);
  EXPECT_EQ(tc_endpoint_status(endpoint), TC_ERR_DISCONNECTED) << "the node has ended";
  source.reset();
  // Threads of the other node may still use what ends with the process.
  EXPECT_TRUE(tc::test::run_until([&] { return threads_of_this_process() <= threads_before; },
                                  [] { std::this_thread::yield(); }));
}

// ---- Shared progress: threads that wait poll the node themselves

TEST_F(FutureApi, with_shared_progress_the_thread_that_waits_takes_its_answer_itself) {
  ASSERT_EQ(tc_node_start_shared_progress(source.handle), TC_OK);
  EXPECT_EQ(tc_node_start_shared_progress(source.handle), TC_ERR_INVALID);
  EXPECT_EQ(tc_node_start_progress(source.handle), TC_ERR_INVALID);
  int here = 0;
  for (int i = 0; i < 200; ++i) {
    Told told;
    auto* const future = source.call(to_target, "echo", std::to_string(i));
    ASSERT_EQ(tc_future_on_ready(future, Told::note, &told), TC_OK);
    ASSERT_EQ(tc_future_wait(future, 10'000), TC_OK);
    tc_future_free(future);  // after its function has returned
    EXPECT_EQ(told.times, 1);
    here += told.thread == std::this_thread::get_id() ? 1 : 0;
  }
  EXPECT_GT(here, 0) << "the progress thread took all of them";
  EXPECT_EQ(tc_node_stop_progress(source.handle), TC_OK);
}

TEST_F(FutureApi, with_shared_progress_nobody_needs_to_wait) {
  ASSERT_EQ(tc_node_start_shared_progress(source.handle), TC_OK);
  for (int i = 0; i < 20; ++i) {
    Told told;
    auto* const future = source.call(to_target, "echo");
    ASSERT_EQ(tc_future_on_ready(future, Told::note, &told), TC_OK);
    for (const auto deadline = Deadline::after_ms(10'000); told.times == 0 && !deadline.passed();)
      std::this_thread::sleep_for(std::chrono::milliseconds(i));  // also when the progress thread serves alone again
    EXPECT_EQ(told.times, 1);
    tc_future_free(future);
  }
}

TEST_F(FutureApi, with_shared_progress_each_of_many_threads_gets_its_answers) {
  ASSERT_EQ(tc_node_start_shared_progress(source.handle), TC_OK);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      for (int i = 0; i < 200; ++i) {
        const auto words = std::to_string(number) + " " + std::to_string(i);
        auto* const future = source.call(to_target, "echo", words);
        size_t size = 0;
        if (tc_future_wait(future, 10'000) == TC_OK)
          if (const auto* bytes = static_cast<const char*>(tc_future_bytes(future, &size));
              words == std::string_view(bytes, size))
            ++right;
        tc_future_free(future);
        if (i % 50 == 0) {
          EXPECT_EQ(tc_endpoint_flush(to_target, 10'000), TC_OK);
        }
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 800);
}

TEST_F(FutureApi, with_shared_progress_a_node_serves_while_its_thread_waits) {
  ASSERT_EQ(tc_node_start_shared_progress(source.handle), TC_OK);
  auto* const unanswered = source.call(to_mute, "echo", "", 0);
  std::atomic<bool> serving{true};
  std::thread waiting([&] {
    while (serving) EXPECT_EQ(tc_future_wait(unanswered, 20), TC_ERR_TIMEOUT);
  });
  auto* const back = target.connect(source);
  for (int i = 0; i < 50; ++i) {
    auto* const future = target.call(back, "echo");
    EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
    EXPECT_EQ(tc_future_status(future), TC_OK);
    tc_future_free(future);
  }
  serving = false;
  waiting.join();
  tc_future_free(unanswered);
}

TEST_F(FutureApi, with_shared_progress_a_deadline_ends_a_call_and_a_timeout_a_wait) {
  ASSERT_EQ(tc_node_start_shared_progress(source.handle), TC_OK);
  auto* const short_lived = source.call(to_mute, "echo", "", 50);
  EXPECT_EQ(tc_future_wait(short_lived, 0), TC_ERR_TIMEOUT);
  EXPECT_EQ(tc_future_wait(short_lived, 1), TC_ERR_TIMEOUT);
  EXPECT_EQ(tc_future_wait(short_lived, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(short_lived), TC_ERR_TIMEOUT);
  tc_future_free(short_lived);
}

// It polls for a moment, and then sleeps in the node.
TEST_F(FutureApi, with_shared_progress_a_long_wait_takes_no_core) {
  ASSERT_EQ(tc_node_start_shared_progress(source.handle), TC_OK);
  auto* const future = source.call(to_mute, "echo", "", 0);
  const auto ran_ms = [] {
    timespec time{};
    EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time), 0);
    return time.tv_sec * 1000 + time.tv_nsec / 1'000'000;
  };
  const auto before = ran_ms();
  EXPECT_EQ(tc_future_wait(future, 400), TC_ERR_TIMEOUT);
  EXPECT_LT(ran_ms() - before, 60);
  tc_future_free(future);
}

TEST_F(FutureApi, the_end_of_the_node_is_told_and_no_new_call_is_taken) {
  struct Last {
    tc_endpoint_t* endpoint;
    tc_message_t* message = nullptr;
    tc_status_t status = TC_OK, another = TC_OK;
    static void note(tc_future_t* future, void* context) {
      auto& last = *static_cast<Last*>(context);
      last.status = tc_future_status(future);
      tc_future_t* none = nullptr;
      last.another = tc_endpoint_call(last.endpoint, last.message, 0, &none);
      tc_future_free(future);
    }
  } last{to_mute};
  auto* const future = source.call(to_mute, "echo");
  tc_ifunc_t* echo = nullptr;
  ASSERT_EQ(tc_ifunc_register(source.handle, "echo", &echo), TC_OK);
  ASSERT_EQ(tc_message_create(echo, "", 0, &last.message), TC_OK);
  ASSERT_EQ(tc_future_on_ready(future, Last::note, &last), TC_OK);
  tc_node_free(std::exchange(source.handle, nullptr));
  EXPECT_EQ(last.status, TC_ERR_CLOSED);
  EXPECT_EQ(last.another, TC_ERR_CLOSED);
  tc_message_free(last.message);
}

// ---- A node in an event loop of the program's own: tc_node_fd() and tc_node_arm(), with poll(2)

// A program's loop, until `done`. How often it had to wait, and for how long it was told to at most.
struct Loop {
  explicit Loop(const Node& node) : node(node.handle) { EXPECT_EQ(tc_node_fd(this->node, &fd), TC_OK); }

  template <class Done>
  bool run_until(Done&& done, uint64_t limit_ms = 10'000) {
    for (const auto deadline = Deadline::after_ms(limit_ms); !deadline.passed();) {
      tc_node_poll(node, nullptr);
      if (done()) return true;
      const auto armed = tc_node_arm(node, &timeout_ms);
      if (armed == TC_ERR_BUSY) continue;
      EXPECT_EQ(armed, TC_OK) << tc_error_message();
      pollfd wanted{fd, POLLIN, 0};
      // A wake that is lost must not look like one that came late.
      const int longest = static_cast<int>(limit_ms);
      ::poll(&wanted, 1, timeout_ms < 0 || timeout_ms > longest ? longest : timeout_ms);
      ++waits;
    }
    return done();
  }

  tc_node_t* node;
  int fd = -1, timeout_ms = 0, waits = 0;
};

class EventLoop : public testing::TestWithParam<const char*> {
 protected:
  const test::Options options = test::options_for(GetParam());
};

TEST_P(EventLoop, brings_the_answers_of_calls) {
  Served target(options);
  Node source(options);
  auto* const endpoint = source.connect(target);
  EXPECT_STREQ(tc_endpoint_transport(endpoint), GetParam());
  Loop loop(source);
  for (int i = 0; i < 200; ++i) {
    auto* const future = source.call(endpoint, "echo", "hello");
    const auto begin = now_ns();
    ASSERT_TRUE(loop.run_until([&] { return tc_future_ready(future) != 0; }));
    EXPECT_EQ(tc_future_status(future), TC_OK);
    EXPECT_LT(now_ns() - begin, 5'000'000'000u) << "the descriptor said nothing; a time-out brought the answer";
    tc_future_free(future);
  }
}

TEST_P(EventLoop, runs_what_peers_send_while_the_program_is_asleep) {
  Node target(options);
  std::atomic<bool> stop = false;
  uint64_t executed = 0;
  Loop loop(target);
  std::thread server([&] {
    loop.run_until([&] { return stop.load(); }, 60'000);
    tc_node_stat(target.handle, "executed", &executed);
  });
  {
    Node source(options);
    auto* const endpoint = source.connect(target);
    for (int i = 0; i < 100; ++i) {
      auto* const future = source.call(endpoint, "echo");
      if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));  // so that it sleeps indeed
      EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
      EXPECT_EQ(tc_future_status(future), TC_OK);
      tc_future_free(future);
    }
  }
  stop = true;
  tc_node_wake(target.handle);
  server.join();
  EXPECT_EQ(executed, 100u);
  EXPECT_GT(loop.waits, 0);
}

TEST_P(EventLoop, an_idle_node_waits_for_its_descriptor_alone) {
  Served target(options);
  Node source(options);
  (void)source.connect(target);
  Loop loop(source);
  EXPECT_FALSE(loop.run_until([] { return false; }, 1500));
  EXPECT_LT(loop.waits, 20);
}

TEST_P(EventLoop, deadlines_of_calls_are_in_the_time_to_wait) {
  Node mute(options);
  Node source(options);
  ASSERT_EQ(tc_node_start_progress(mute.handle), TC_OK);
  auto* const endpoint = source.connect(mute);
  ASSERT_EQ(tc_node_stop_progress(mute.handle), TC_OK);
  Loop loop(source);
  auto* const future = source.call(endpoint, "echo", "", 30);
  const auto begin = now_ns();
  ASSERT_TRUE(loop.run_until([&] { return tc_future_ready(future) != 0; }));
  EXPECT_GE(now_ns() - begin, 25'000'000u);
  EXPECT_LE(loop.timeout_ms, 50);
  EXPECT_GE(loop.timeout_ms, 0);
  EXPECT_EQ(tc_future_status(future), TC_ERR_TIMEOUT);
  tc_future_free(future);
}

INSTANTIATE_TEST_SUITE_P(Over, EventLoop, testing::Values("shm", "tcp", "tls"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST(EventLoop, a_wake_makes_the_descriptor_readable) {
  Node node;
  int fd = -1, timeout_ms = 0;
  ASSERT_EQ(tc_node_fd(node.handle, &fd), TC_OK);
  while (tc_node_arm(node.handle, &timeout_ms) == TC_ERR_BUSY) tc_node_poll(node.handle, nullptr);
  EXPECT_EQ(timeout_ms, -1) << "nothing is due";
  pollfd wanted{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 0), 0);
  tc_node_wake(node.handle);
  EXPECT_EQ(::poll(&wanted, 1, 5000), 1);
  EXPECT_EQ(tc_node_arm(node.handle, &timeout_ms), TC_ERR_BUSY) << "the wake is something that happened";
  EXPECT_EQ(tc_node_arm(node.handle, &timeout_ms), TC_OK);
  EXPECT_EQ(::poll(&wanted, 1, 0), 0);
}

TEST(EventLoop, a_node_with_a_progress_thread_cannot_be_armed) {
  Served node;
  int timeout_ms = 0;
  EXPECT_EQ(tc_node_arm(node.handle, &timeout_ms), TC_ERR_INVALID);
}

}  // namespace
}  // namespace tc::capi
