// SPDX-License-Identifier: Apache-2.0
//
// A client leaves while answers are on their way to it. The server must still run every message that a send accepted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

#include "base/clock.h"
#include "base/testing/run_until.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using ::testing::HasSubstr;

constexpr const char* transports[] = {"shm", "unix",   "tcp", "tls",
#if TC_HAS_UCX
                                      "ucx", "ucx-put"
#endif
};

// By the name that the links have. TCP is plain only on networks that are trusted, and UCX is used on such ones alone.
test::Options options_for(std::string_view transport) {
  const bool is_ucx = transport.starts_with("ucx");
  test::Options options{{"transport", transport == "tls" ? "tcp" : transport.data()}};
  if (transport == "tcp" || is_ucx) options.emplace_back("trust-network", "127.0.0.0/8");
  if (is_ucx) {
    options.emplace_back("ucx-tls", "tcp,self");
    options.emplace_back("ucx-devices", "lo");
  }
  return options;
}

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

tc_message_t* message_to(const Node& node, const std::string& payload) {
  tc_ifunc_t* ifunc = nullptr;
  tc_message_t* message = nullptr;
  EXPECT_EQ(tc_ifunc_register(node.handle, "exported", &ifunc), TC_OK) << tc_error_message();
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
  const test::Options options = options_for(GetParam());
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

TEST_P(Leaving, an_endpoint_that_is_closed_without_waiting_has_sent_everything_before_its_node_is_destroyed) {
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
  const auto options = options_for("tcp");
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
