// SPDX-License-Identifier: Apache-2.0
//
// Messages of every size, sent in every way over real connections. Each accepted message runs once and whole. A message
// that cannot be sent is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <thread>

#include "base/testing/run_until.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using test::Served;
using ::testing::HasSubstr;

// What the ifunc `weigh` (tests/ifuncs) makes of payloads.
struct Scale {
  uint64_t calls = 0, bytes = 0, sum = 0;
  bool operator==(const Scale&) const = default;

  void add(const std::string& payload) {
    uint64_t of_this = payload.size();
    for (size_t at = 0; at < payload.size(); at += sizeof(uint64_t)) {
      uint64_t word = 0;
      std::memcpy(&word, payload.data() + at, std::min(sizeof word, payload.size() - at));
      of_this = of_this * 31 + word;
    }
    ++calls;
    bytes += payload.size();
    sum += of_this;
  }
  friend std::ostream& operator<<(std::ostream& out, const Scale& scale) {
    return out << scale.calls << " calls, " << scale.bytes << " bytes, sum " << scale.sum;
  }
};

std::string bytes_of(size_t size) {
  std::string bytes(size, '?');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>('!' + (i * 7 + size + (i >> 12)) % 90);
  return bytes;
}

class Messages {
 public:
  explicit Messages(const Node& node) {
    EXPECT_EQ(tc_ifunc_register(node.handle, "weigh", &weigh_), TC_OK) << tc_error_message();
  }
  ~Messages() {
    for (auto* const message : made_) tc_message_free(message);
  }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  tc_message_t* make(const std::string& payload) { return make(tc_message_create, payload); }
  tc_message_t* make_in_place(std::span<const char> payload) { return make(tc_message_create_in_place, payload); }

 private:
  tc_message_t* make(decltype(tc_message_create) create, std::span<const char> payload) {
    tc_message_t* message = nullptr;
    EXPECT_EQ(create(weigh_, payload.data(), payload.size(), &message), TC_OK) << tc_error_message();
    made_.push_back(message);
    return message;
  }

  tc_ifunc_t* weigh_ = nullptr;
  std::vector<tc_message_t*> made_;
};

class Sizes : public testing::TestWithParam<const char*> {
 protected:
  // Around what a ring and a stream of bytes take in one frame, what a ring takes in a piece, and what their buffers
  // hold.
  static std::vector<size_t> boundaries() {
    std::vector<size_t> sizes{0, 1};
    for (const size_t around : {8u, 24u, 32'752u, 65'520u, 65'528u, 65'536u, 98'304u, 131'056u, 131'072u, 262'144u})
      for (const size_t size : {around - 1, around, around + 1}) sizes.push_back(size);
    return sizes;
  }
  // Calls of the node `target`, of which `weighed` tells.
  void expect_weighed(tc_endpoint_t* endpoint, const Scale& expected) {
    ASSERT_EQ(tc_endpoint_flush(endpoint, 20'000), TC_OK) << tc_error_message();
    EXPECT_EQ(weighed, expected);
  }

  const test::Options options = test::options_for(GetParam());
  Scale weighed;
};

TEST_P(Sizes, a_message_of_any_size_that_wants_no_answer_runs_once_and_whole) {
  Served target(options);
  Node source(options);
  tc_node_expose(target.handle, "weighed", &weighed, sizeof weighed);
  auto* const endpoint = source.connect(target);
  EXPECT_STREQ(tc_endpoint_transport(endpoint), GetParam());
  Messages messages(source);
  Scale expected;
  std::vector<tc_message_t*> all;
  for (const auto size : boundaries()) {
    const auto payload = bytes_of(size);
    all.push_back(messages.make(payload));
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(tc_endpoint_send(endpoint, all.back()), TC_OK) << size << ": " << tc_error_message();
      expected.add(payload);
    }
    expect_weighed(endpoint, expected);
  }
  size_t sent = 0;
  ASSERT_EQ(tc_endpoint_send_many(endpoint, all.data(), all.size(), &sent), TC_OK) << tc_error_message();
  EXPECT_EQ(sent, all.size());
  for (const auto size : boundaries()) expected.add(bytes_of(size));
  expect_weighed(endpoint, expected);
  tc_endpoint_free(endpoint, 1000);
}

TEST_P(Sizes, a_message_that_was_made_in_place_has_the_bytes_that_are_there_when_it_is_sent) {
  Served target(options);
  Node source(options);
  tc_node_expose(target.handle, "weighed", &weighed, sizeof weighed);
  auto* const endpoint = source.connect(target);
  Messages messages(source);
  Scale expected;
  for (const auto size : boundaries()) {
    auto payload = bytes_of(size);
    const std::unique_ptr<char[]> place(new char[size]);  // no byte more, which a sanitizer would see
    std::memcpy(place.get(), payload.data(), size);
    auto* const message = messages.make_in_place({place.get(), size});
    size_t told = 0;
    auto* const bytes = static_cast<char*>(tc_message_payload(message, &told));
    EXPECT_EQ(told, size);
    EXPECT_EQ(bytes == place.get(), size >= 24) << size;
    for (const char last : {'a', 'b', 'c'}) {
      if (size != 0) bytes[size - 1] = payload.back() = last;
      ASSERT_EQ(tc_endpoint_send(endpoint, message), TC_OK) << size << ": " << tc_error_message();
      expected.add(payload);
    }
    size_t sent = 0;
    ASSERT_EQ(tc_endpoint_send_many(endpoint, &message, 1, &sent), TC_OK) << size << ": " << tc_error_message();
    expected.add(payload);
    expect_weighed(endpoint, expected);
  }
  tc_endpoint_free(endpoint, 1000);
}

TEST_P(Sizes, a_message_over_the_peers_limit_is_refused_by_every_way_to_send) {
  auto small = options;
  small.emplace_back("max-message", "4096");
  Served target(small);
  Node source(options);
  tc_node_expose(target.handle, "weighed", &weighed, sizeof weighed);
  auto* const endpoint = source.connect(target);
  Messages messages(source);
  auto* const fits = messages.make(bytes_of(4096));
  auto* const first = messages.make("x");
  Scale expected;
  ASSERT_EQ(tc_endpoint_send(endpoint, first), TC_OK) << tc_error_message();
  expected.add("x");
  for (const size_t size : {4097u, 5000u, 70'000u, 200'000u}) {
    auto* const too_large = messages.make(bytes_of(size));
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(tc_endpoint_send(endpoint, too_large), TC_ERR_TOO_LARGE) << size;
      EXPECT_THAT(tc_error_message(), testing::AllOf(HasSubstr(std::to_string(size)), HasSubstr("4096")));
    }
    const std::array<tc_message_t*, 3> mixed{fits, too_large, fits};
    size_t sent = 7;
    EXPECT_EQ(tc_endpoint_send_many(endpoint, mixed.data(), mixed.size(), &sent), TC_ERR_TOO_LARGE) << size;
    EXPECT_EQ(sent, 1u);
    expected.add(bytes_of(4096));
  }
  expect_weighed(endpoint, expected);
  tc_endpoint_free(endpoint, 1000);
}

// A waits for room for a large message, and meanwhile runs a call of B, whose answer must not get into that message.
TEST_P(Sizes, the_rest_of_a_message_leaves_before_answers_that_were_given_meanwhile) {
  auto more_room = options;
  more_room.emplace_back("ring-bytes", "512K");  // for all of B's call
  Node a(more_room), b(more_room);
  tc_node_expose(b.handle, "weighed", &weighed, sizeof weighed);
  EXPECT_EQ(tc_node_start_progress(b.handle), TC_OK);
  auto* const to_b = a.connect(b);
  EXPECT_EQ(tc_node_stop_progress(b.handle), TC_OK);
  auto* const to_a = b.connect(a);
  const auto asked = bytes_of(200'000);  // its answer comes in pieces, too
  auto* const answer = b.call(to_a, "echo", asked);
  Messages messages(a);
  const auto large = bytes_of(24u << 20);
  tc_endpoint_set_timeout(to_b, 300);  // long enough for the call of B to run, except on the busiest machine
  ASSERT_EQ(tc_endpoint_send(to_b, messages.make(large)), TC_OK) << tc_error_message();
  EXPECT_EQ(weighed, Scale{}) << "it was to be sent in part";
  Scale expected;
  expected.add(large);
  EXPECT_TRUE(tc::test::run_until([&] { return tc_future_ready(answer) != 0 && weighed == expected; },
                                  [&] {
                                    tc_node_poll(a.handle, nullptr);
                                    tc_node_poll(b.handle, nullptr);
                                  },
                                  20'000))
      << weighed;
  EXPECT_EQ(tc_future_status(answer), TC_OK) << tc_future_error(answer);
  size_t size = 0;
  const auto* const bytes = static_cast<const char*>(tc_future_bytes(answer, &size));
  EXPECT_EQ(std::string(bytes, size), asked);
  EXPECT_EQ(tc_endpoint_status(to_b), TC_OK) << tc_error_message();
  tc_future_free(answer);
}

INSTANTIATE_TEST_SUITE_P(By, Sizes, testing::Values("shm", "tcp", "tls"),
                         [](const auto& transport) { return std::string(transport.param); });

// ---- Two nodes flood each other with calls
//
// The answers are large, so more bytes are on their way than may wait at either node. Every call must be answered.

constexpr size_t size = 1 << 20, window = 100, calls = 150;

// Keeps `window` calls on their way until all are answered. Returns how many were answered well.
size_t flood(const Node& from, tc_endpoint_t* endpoint) {
  const std::string payload(size, 'x');
  std::deque<tc_future_t*> waiting;
  size_t answered = 0;
  for (size_t sent = 0; sent < calls || !waiting.empty();) {
    if (sent < calls && waiting.size() < window) {
      waiting.push_back(from.call(endpoint, "echo", payload, 60'000));
      ++sent;
      continue;
    }
    auto* const future = waiting.front();
    waiting.pop_front();
    EXPECT_EQ(tc_future_wait(future, 60'000), TC_OK);
    EXPECT_EQ(tc_future_status(future), TC_OK) << tc_future_error(future);
    if (tc_future_status(future) == TC_OK) ++answered;
    tc_future_free(future);
    if (testing::Test::HasFailure()) break;
  }
  for (auto* const future : waiting) tc_future_free(future);
  return answered;
}

class Floods : public testing::TestWithParam<const char*> {};

TEST_P(Floods, two_nodes_that_flood_each_other_get_all_their_answers) {
  const auto options = test::options_for(GetParam());
  Node one(options), two(options);
  ASSERT_EQ(tc_node_start_progress(one.handle), TC_OK);
  ASSERT_EQ(tc_node_start_progress(two.handle), TC_OK);
  auto* const to_two = one.connect(two);
  auto* const to_one = two.connect(one);
  ASSERT_STREQ(tc_endpoint_transport(to_two), GetParam());
  for (auto* const endpoint : {to_two, to_one}) tc_endpoint_set_timeout(endpoint, 60'000);
  size_t by_one = 0;
  std::thread other([&] { by_one = flood(one, to_two); });
  EXPECT_EQ(flood(two, to_one), calls);
  other.join();
  EXPECT_EQ(by_one, calls);
  EXPECT_EQ(tc_endpoint_flush(to_two, 10'000), TC_OK) << tc_error_message();
  tc_endpoint_free(to_two, 1000);
  tc_endpoint_free(to_one, 1000);
}

INSTANTIATE_TEST_SUITE_P(Over, Floods, testing::Values("shm", "unix", "tcp", "tls"),
                         [](const auto& transport) { return std::string(transport.param); });

}  // namespace
}  // namespace tc::capi
