// SPDX-License-Identifier: Apache-2.0
//
// Endpoints as programs see them: when the link of each ends, and what has been sent before it ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/testing/run_until.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using test::Served;
using ::testing::HasSubstr;

// Of nodes that drive themselves.
template <class Done>
bool wait_for(Done&& done) {
  for (const auto deadline = Deadline::after_ms(20'000); !deadline.passed();) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

class Endpoints : public testing::TestWithParam<const char*> {
 protected:
  const test::Options options = test::options_for(GetParam());
};

TEST_P(Endpoints, of_the_peer_go_on_when_ours_is_closed_and_all_that_they_accept_runs) {
  Served first(options), second(options);
  auto* const to_second = first.connect(second);
  EXPECT_STREQ(tc_endpoint_transport(to_second), GetParam());
  auto* const to_first = second.connect(first);
  ASSERT_EQ(test::number_of(first, "links"), 1u) << "one connection serves both ways";
  tc_ifunc_t* echo = nullptr;
  tc_message_t* message = nullptr;
  ASSERT_EQ(tc_ifunc_register(second.handle, "echo", &echo), TC_OK);
  ASSERT_EQ(tc_message_create(echo, "x", 1, &message), TC_OK);
  std::atomic<uint64_t> accepted = 0;
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    while (!stop)
      if (tc_endpoint_send(to_first, message) == TC_OK) ++accepted;
  });
  EXPECT_TRUE(wait_for([&] { return accepted > 1000; }));
  EXPECT_EQ(tc_endpoint_free(to_second, 5000), TC_OK) << tc_error_message();
  const auto before = accepted.load();
  EXPECT_TRUE(wait_for([&] { return accepted > before + 1000; }));
  stop = true;
  sender.join();
  EXPECT_EQ(tc_endpoint_status(to_first), TC_OK) << tc_error_message();
  EXPECT_EQ(tc_endpoint_flush(to_first, 20'000), TC_OK) << tc_error_message();
  EXPECT_EQ(test::number_of(first, "executed"), accepted);
  EXPECT_EQ(tc_endpoint_free(to_first, 5000), TC_OK) << tc_error_message();
  EXPECT_TRUE(wait_for([&] { return test::number_of(first, "links") + test::number_of(second, "links") == 0; }));
  tc_message_free(message);
}

TEST_P(Endpoints, of_a_client_that_lives_on_end_their_link_at_the_server) {
  Served server(options);
  Node client(options);
  auto* const endpoint = client.connect(server);
  auto* const future = client.call(endpoint, "echo");
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  tc_future_free(future);
  EXPECT_EQ(tc_endpoint_free(endpoint, 5000), TC_OK) << tc_error_message();
  EXPECT_TRUE(wait_for([&] { return test::number_of(server, "links") == 0; })) << "though the client does nothing more";
  EXPECT_TRUE(wait_for([&] {
    tc_node_poll(client.handle, nullptr);
    return test::number_of(client, "links") == 0;
  }));
}

// With a progress thread any thread may wait, and the others go on meanwhile.
class Waiting : public testing::Test {
 protected:
  Waiting() {
    EXPECT_EQ(tc_node_start_progress(mute.handle), TC_OK);
    to_mute = source.connect(mute);
    EXPECT_EQ(tc_node_stop_progress(mute.handle), TC_OK);
  }
  // While a thread waits in `wait`, this one calls; then the mute node speaks, and the wait ends well.
  void others_go_on_during(const std::function<tc_status_t()>& wait) {
    std::atomic<bool> begins = false, has_ended = false;
    tc_status_t status = TC_ERR_INTERNAL;
    std::thread waiting([&] {
      begins = true;
      status = wait();
      has_ended = true;
    });
    while (!begins) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it waits, most likely
    for (int i = 0; i < calls; ++i) {
      auto* const future = source.call(to_target, "echo");
      EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
      EXPECT_EQ(tc_future_status(future), TC_OK);
      tc_future_free(future);
    }
    EXPECT_FALSE(has_ended);
    EXPECT_EQ(tc_node_start_progress(mute.handle), TC_OK);
    waiting.join();
    EXPECT_EQ(status, TC_OK);
  }

  static constexpr int calls = 5;
  const test::Options options = test::options_for("shm");
  Served target{options};
  Node mute{options};  // whom nobody drives
  Served source{options};
  tc_endpoint_t* to_target = source.connect(target);
  tc_endpoint_t* to_mute = nullptr;
};

TEST_F(Waiting, for_a_connection_keeps_no_other_thread_waiting) {
  tc_endpoint_t* another = nullptr;
  others_go_on_during([&] { return tc_node_connect(source.handle, tc_node_address(mute.handle), 60'000, &another); });
  EXPECT_NE(another, nullptr);
}

TEST_F(Waiting, for_a_flush_keeps_no_other_thread_waiting) {
  tc_future_free(source.call(to_mute, "echo"));
  others_go_on_during([&] { return tc_endpoint_flush(to_mute, 60'000); });
}

TEST_F(Waiting, for_the_end_of_an_endpoint_keeps_no_other_thread_waiting) {
  others_go_on_during([&] { return tc_endpoint_free(to_mute, 60'000); });
}

TEST_F(Waiting, for_room_keeps_no_other_thread_waiting) {
  tc_ifunc_t* echo = nullptr;
  tc_message_t* message = nullptr;
  const std::string payload(100'000, 'x');
  ASSERT_EQ(tc_ifunc_register(source.handle, "echo", &echo), TC_OK);
  ASSERT_EQ(tc_message_create(echo, payload.data(), payload.size(), &message), TC_OK);
  tc_endpoint_set_timeout(to_mute, 0);
  while (tc_endpoint_send(to_mute, message) == TC_OK) {
  }
  tc_endpoint_set_timeout(to_mute, 60'000);
  others_go_on_during([&] { return tc_endpoint_send(to_mute, message); });
  tc_message_free(message);
}

// ---- Questions about the peer

TEST_P(Endpoints, say_what_the_peer_tells_of_itself) {
  Served server(options);
  Node client(options);
  auto* const endpoint = client.connect(server);
  tc_future_t* future = nullptr;
  ASSERT_EQ(tc_endpoint_ask_statistics(endpoint, 20'000, &future), TC_OK) << tc_error_message();
  tc_future_t* too_early = nullptr;
  EXPECT_EQ(tc_endpoint_ask_statistics(endpoint, 20'000, &too_early), TC_ERR_BUSY);
  EXPECT_EQ(too_early, nullptr);
  ASSERT_EQ(tc_future_wait(future, 20'000), TC_OK) << tc_error_message();
  ASSERT_EQ(tc_future_status(future), TC_OK) << tc_error_message();
  size_t size = 0;
  const auto* const bytes = static_cast<const char*>(tc_future_bytes(future, &size));
  const std::string text(bytes, size);
  EXPECT_THAT(text, HasSubstr(std::string("\nversion ") + tc_version() + "\n"));
  for (size_t i = 0; i < tc_statistic_count(); ++i)
    EXPECT_THAT(text, HasSubstr(std::string("\nstat ") + tc_statistic_name(tc_statistic_at(i)) + " "));
  tc_future_free(future);
  EXPECT_EQ(tc_endpoint_ask_statistics(nullptr, 0, &future), TC_ERR_INVALID);
  EXPECT_EQ(tc_endpoint_ask_statistics(endpoint, 0, nullptr), TC_ERR_INVALID);
}

// Rings alone need no look at the system in each poll. What waits for room in one does.
TEST(Answers, that_waited_for_room_leave_with_the_next_poll) {
  const test::Options options{{"transport", "shm"}, {"ring-bytes", "64K"}};
  Node target(options), source(options);
  EXPECT_EQ(tc_node_start_progress(target.handle), TC_OK);
  auto* const endpoint = source.connect(target);
  EXPECT_EQ(tc_node_stop_progress(target.handle), TC_OK);
  std::vector<tc_future_t*> futures;
  for (int i = 0; i < 64; ++i) {
    futures.push_back(source.call(endpoint, "echo", std::string(8000, 'x'), 0));
    tc_node_poll(target.handle, nullptr);
  }
  const auto poll = [](const Node& node, int times) {
    for (int i = 0; i < times; ++i) tc_node_poll(node.handle, nullptr);
  };
  const auto ready = [&] { return std::ranges::count_if(futures, [](auto* f) { return tc_future_ready(f) != 0; }); };
  for (int i = 0; i < 4; ++i) {
    // There is no room, and for some milliseconds nothing else to do.
    for (const auto deadline = Deadline::after_ms(10); !deadline.passed();) poll(target, 100);
    poll(source, 100);
    const auto before = ready();
    ASSERT_LT(before, 64);
    poll(target, 1);
    poll(source, 100);
    EXPECT_GT(ready(), before);
  }
  for (int i = 0; i < 10'000 && ready() != 64; ++i) {
    poll(target, 1);
    poll(source, 1);
  }
  for (auto* const future : futures) {
    EXPECT_EQ(tc_future_status(future), TC_OK) << tc_error_message();
    tc_future_free(future);
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Endpoints, testing::Values("shm", "tcp", "tls"),
                         [](const auto& transport) { return std::string(transport.param); });

// ---- A client leaves while answers are on their way to it
//
// The server must still run every message that a send accepted.

constexpr const char* transports[] = {"shm", "unix",   "tcp", "tls",
#if TC_HAS_UCX
                                      "ucx", "ucx-put"
#endif
};

// What the ifunc `exported` calls at the server. The first one takes so long that all others, and the client's leaving,
// come meanwhile.
std::atomic<uint64_t> ran;
std::atomic<int> first_takes_ms;
uint64_t count() {
  if (ran++ == 0) std::this_thread::sleep_for(std::chrono::milliseconds(first_takes_ms.load()));
  return ran;
}

// Waits until the server has run so many; meanwhile `client` is polled, if there is one.
bool have_run(uint64_t wanted, tc_node_t* client = nullptr) {
  const auto wait = [&] {
    if (client != nullptr)
      tc_node_wait(client, 1, nullptr);
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  return tc::test::run_until([&] { return ran >= wanted; }, wait, 20'000) && ran == wanted;
}

struct Server : Node {
  explicit Server(const test::Options& options, int first_ms = 50) : Node(options) {
    ran = 0;
    first_takes_ms = first_ms;
    EXPECT_EQ(tc_node_export(handle, "application_answer", reinterpret_cast<void*>(&count)), TC_OK);
    EXPECT_EQ(tc_node_start_progress(handle), TC_OK);
  }
};

tc_message_t* message_to(const Node& node, const std::string& payload, const char* name = "exported") {
  tc_ifunc_t* ifunc = nullptr;
  tc_message_t* message = nullptr;
  EXPECT_EQ(tc_ifunc_register(node.handle, name, &ifunc), TC_OK) << tc_error_message();
  EXPECT_EQ(tc_message_create(ifunc, payload.data(), payload.size(), &message), TC_OK) << tc_error_message();
  return message;
}

constexpr uint64_t calls = 100, sends = 4900;

// Calls whose answers nobody reads, and sends.
void flood(const Node& client, tc_endpoint_t* endpoint) {
  auto* const message = message_to(client, std::string(100, 'x'));
  for (uint64_t i = 0; i < calls; ++i) {
    tc_future_t* future = nullptr;
    ASSERT_EQ(tc_endpoint_call(endpoint, message, 10'000, &future), TC_OK) << tc_error_message();
    tc_future_free(future);
  }
  for (uint64_t i = 0; i < sends; ++i) ASSERT_EQ(tc_endpoint_send(endpoint, message), TC_OK) << tc_error_message();
  tc_message_free(message);
}

class Leaving : public testing::TestWithParam<const char*> {
 protected:
  const test::Options options = test::options_for(GetParam());
};

TEST_P(Leaving, a_node_that_is_destroyed_has_sent_everything) {
  Server server(options);
  {
    Node client(options);
    auto* const endpoint = client.connect(server);
    ASSERT_STREQ(tc_endpoint_transport(endpoint), GetParam());
    flood(client, endpoint);
  }
  EXPECT_TRUE(have_run(calls + sends)) << ran;
}

TEST_P(Leaving, an_endpoint_closed_without_waiting_has_sent_everything_before_its_node_ends) {
  Server server(options);
  {
    Node client(options);
    auto* const endpoint = client.connect(server);
    flood(client, endpoint);
    EXPECT_EQ(tc_endpoint_free(endpoint, 0), TC_ERR_TIMEOUT);
  }
  EXPECT_TRUE(have_run(calls + sends)) << ran;
}

TEST_P(Leaving, a_node_that_lives_on_sends_everything_of_a_closed_endpoint) {
  Server server(options);
  Node client(options);
  auto* const endpoint = client.connect(server);
  flood(client, endpoint);
  EXPECT_EQ(tc_endpoint_free(endpoint, 0), TC_ERR_TIMEOUT);
  EXPECT_TRUE(have_run(calls + sends, client.handle)) << ran;
}

// It was accepted when its first piece had left, and waits in memory of the client's.
TEST_P(Leaving, a_large_message_whose_rest_waits_for_room_leaves_before_its_node_is_destroyed) {
  Server server(options, 300);
  {
    Node client(options);
    auto* const endpoint = client.connect(server);
    auto* const small = message_to(client, "");
    ASSERT_EQ(tc_endpoint_send(endpoint, small), TC_OK);
    tc_endpoint_set_timeout(endpoint, 20);
    auto* const large = message_to(client, std::string(32 << 20, 'x'));
    ASSERT_EQ(tc_endpoint_send(endpoint, large), TC_OK) << tc_error_message();
    tc_message_free(small);
    tc_message_free(large);
  }
  EXPECT_TRUE(have_run(2)) << ran;
}

// What the ifunc `onward` calls at the client: stays until it is let go.
std::atomic<bool> is_held, may_go;
uint64_t hold() {
  for (is_held = true; !may_go;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return 0;
}

// A call that runs on another thread while its node is destroyed goes on to the server, which makes no room just then.
TEST_P(Leaving, a_call_that_a_node_waits_for_at_its_end_goes_on_when_there_is_room) {
  constexpr uint32_t number = 7;
  const auto with = [&](const char* key, const char* value) {
    auto more = options;
    more.emplace_back(key, value);
    return more;
  };
  is_held = may_go = false;
  Server server(with("id", "7"), 500);
  Served source(options);
  uint64_t sent = 0;
  std::jthread let_go;
  {
    Node client(with("threads", "2"));
    ASSERT_EQ(tc_node_export(client.handle, "application_answer", reinterpret_cast<void*>(&hold)), TC_OK);
    ASSERT_EQ(tc_node_start_progress(client.handle), TC_OK);
    auto* const goes_on = message_to(source, {reinterpret_cast<const char*>(&number), sizeof number}, "onward");
    ASSERT_EQ(tc_endpoint_send(source.connect(client), goes_on), TC_OK) << tc_error_message();
    tc_message_free(goes_on);
    ASSERT_TRUE(wait_for([] { return is_held.load(); }));
    auto* const endpoint = client.connect(server);
    auto* const filling = message_to(client, std::string(4096, 'x'));
    tc_endpoint_set_timeout(endpoint, 0);
    while (tc_endpoint_send(endpoint, filling) == TC_OK) ++sent;
    tc_message_free(filling);
    let_go = std::jthread([] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      may_go = true;
    });
  }
  EXPECT_TRUE(have_run(sent + 1)) << ran << " of " << sent + 1;
}

INSTANTIATE_TEST_SUITE_P(Over, Leaving, testing::ValuesIn(transports), [](const auto& transport) {
  std::string name(transport.param);
  std::ranges::replace(name, '-', '_');
  return name;
});

struct Log {
  static void add(void* self, int, const char* line) {
    auto& log = *static_cast<Log*>(self);
    const std::scoped_lock lock(log.mutex);
    log.text += line;
  }
  std::mutex mutex;
  std::string text;
};

TEST(LeavingASilentPeer, takes_a_bounded_time_and_what_was_lost_is_in_the_log) {
  const auto options = test::options_for("tcp");
  Node server(options);
  Log log;
  uint64_t begin = 0;
  ASSERT_EQ(tc_node_start_progress(server.handle), TC_OK);
  {
    Node client(options, &Log::add, &log);
    auto* const endpoint = client.connect(server);
    ASSERT_EQ(tc_node_stop_progress(server.handle), TC_OK);
    tc_endpoint_set_timeout(endpoint, 20);
    auto* const large = message_to(client, std::string(32 << 20, 'x'));
    ASSERT_EQ(tc_endpoint_send(endpoint, large), TC_OK) << tc_error_message();
    tc_message_free(large);
    begin = now_ns();
  }
  EXPECT_LT(now_ns() - begin, 20'000'000'000u);
  EXPECT_THAT(log.text, HasSubstr("are lost: they waited to be sent when the link was closed"));
  EXPECT_THAT(log.text, HasSubstr("may be lost: it had not read them when the connection ended"));
}

}  // namespace
}  // namespace tc::capi
