// SPDX-License-Identifier: Apache-2.0
//
// Each allocation of a target fails once, and then many in a row: it costs a call or a link, whose owner is told, and never
// the node.
#include <cstdlib>
#include <new>

#include "node/testing/node_test_kit.h"
#include "transport/network/network.h"

namespace {

// Of this thread: how many allocations from now on succeed, and how many fail behind those.
thread_local bool is_failing = false;
thread_local size_t succeed = 0, fail_then = 0, failed = 0;

bool allocation_fails() noexcept {
  if (!is_failing) return false;
  if (succeed != 0) return --succeed, false;
  if (fail_then == 0) return false;
  --fail_then;
  ++failed;
  return true;
}

void* allocate(size_t size, size_t alignment) {
  void* const memory =
      allocation_fails() ? nullptr : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Not inlined: gcc takes a new and a free() in one function for a mistake.
[[gnu::noinline]] void* operator new(size_t size) { return allocate(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  return allocate(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace tc::node {
namespace {

using Kind = std::string_view;

class NoMemory : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Node> make(uint32_t id) {
    auto config = Config::defaults();
    config.id = id;
    config.log = std::getenv("TC_TEST_LOG") ? "debug" : "off";
    config.code.use_bitcode = false;
    config.network.choice = *transport::parse_choice(GetParam());
    return std::move(*Node::create(std::move(config), [](const Config& c, transport::Events& events) {
      return transport::Network::create(c.network, events);
    }));
  }

  // The target's turn: here its allocations fail.
  void turn() {
    is_failing = true;
    try {
      target->poll();
      target->expire();
    } catch (const std::bad_alloc&) {  // what an application is told: no memory; it goes on
    }
    is_failing = false;
    source->poll();
    source->expire();
  }
  template <class Done>
  bool until(Done&& done) {
    for (const auto deadline = Deadline::after_ms(20'000); !done();) {
      if (deadline.passed()) return false;
      turn();
    }
    return true;
  }
  Link* reach() {
    auto link = source->links().find_or_reach(target->address());
    EXPECT_TRUE(link) << link.error().message;
    (*link)->endpoints = 1;  // it stays when it is lost
    EXPECT_TRUE(until([&] { return (*link)->state() != Link::State::greeting; })) << "a greeting ends";
    return *link;
  }
  // Null: it was not accepted.
  std::shared_ptr<Future> ask(Link& link, const std::string& ifunc, std::string_view payload) {
    auto future = source->call(link, *test::message(*source, ifunc, payload), 500, Deadline::after_ms(0));
    return future ? *future : nullptr;
  }
  void scenario() {
    auto* link = reach();
    std::vector<std::shared_ptr<Future>> futures;
    const std::string large(300'000, 'x');
    for (const std::string_view payload : {std::string_view("one"), std::string_view(large), std::string_view("two")}) {
      if (link->state() != Link::State::ready) break;
      if (auto future = ask(*link, "echo", payload)) futures.push_back(std::move(future));
    }
    EXPECT_TRUE(until([&] { return test::all_ready(futures); })) << "every call ends";
    for (const auto& future : futures) EXPECT_EQ(future->message.empty(), future->status == TC_OK);
    target->store().evict(test::load_bundle("echo").id());
    const auto again = link->state() == Link::State::ready ? ask(*link, "echo", "again") : nullptr;
    EXPECT_TRUE(again == nullptr || until([&] { return again->ready.load(); }));
    leave(*link);
  }
  void leave(Link& link) {
    (void)source->close(link, Deadline::after_ms(0));
    EXPECT_TRUE(until([&] { return target->stat("links") == 0u && source->stat("links") == 0u; })) << "no link is left";
  }
  void check_that_it_lives() {
    auto* link = reach();
    ASSERT_EQ(link->state(), Link::State::ready) << link->reason().message;
    const auto answer = ask(*link, "echo", "as ever");
    ASSERT_NE(answer, nullptr);
    until([&] { return answer->ready.load(); });
    EXPECT_EQ(answer->status, TC_OK) << answer->message;
    leave(*link);
  }

  std::unique_ptr<Node> target = make(1), source = make(2);
  uint64_t ran = 0;  // of the messages that were sent in part, and those behind them
};

TEST_P(NoMemory, costs_a_call_or_a_link_and_never_the_node) {
  for (const size_t in_a_row : {1u, 30u}) {
    for (size_t number = 0; number < 5000; ++number) {
      SCOPED_TRACE(fmt::format("{} allocations succeed, then {} fail", number, in_a_row));
      failed = 0;
      succeed = number;
      fail_then = in_a_row;
      scenario();
      fail_then = 0;
      check_that_it_lives();
      if (HasFailure() || failed == 0) break;
    }
    EXPECT_EQ(failed, 0u) << "the last round is one in which all succeed";
  }
}

// The rest of a message is kept when its deadline has passed. Where there is no memory for that, the link ends, lest other
// frames get into the middle of the message.
TEST_P(NoMemory, a_message_that_was_sent_in_part_arrives_or_ends_its_link) {
  const std::string large(8u << 20, 'x');
  for (size_t number = 0; number < 200; ++number) {
    SCOPED_TRACE(fmt::format("{} allocations succeed, then all fail", number));
    auto* const link = reach();
    const auto message = test::message(*source, "echo", large);
    failed = 0;
    succeed = number;
    fail_then = SIZE_MAX;
    is_failing = true;
    Status sent;
    try {
      sent = source->send(*link, *message, false, Deadline::after_ms(2));
    } catch (const std::bad_alloc&) {
      sent = fail(TC_ERR_NO_MEMORY, "none");
    }
    is_failing = false;
    fail_then = 0;
    const bool all_succeeded = failed == 0;
    EXPECT_EQ(target->executed(), ran) << "it was to be sent in part";
    if (sent) {
      EXPECT_TRUE(until([&] { return target->executed() == ran + 1; })) << "it was accepted";
      ++ran;
    }
    if (link->is_ready()) {
      const auto in_pieces = test::message(*source, "echo", std::string(300'000, 'y'));
      const auto next = source->call(*link, *in_pieces, 0, Deadline::after_ms(0)).value();
      EXPECT_TRUE(until([&] { return next->ready.load(); }));
      EXPECT_EQ(next->status, TC_OK) << next->message;
      ++ran;
    }
    EXPECT_THAT(link->reason().message, testing::Not(testing::HasSubstr("breaks the protocol")));
    leave(*link);
    if (HasFailure() || all_succeeded) break;
  }
  EXPECT_EQ(failed, 0u) << "the last round is one in which all succeed";
}

INSTANTIATE_TEST_SUITE_P(On, NoMemory, testing::Values("shm", "tcp"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace tc::node
