// SPDX-License-Identifier: Apache-2.0
//
// Each allocation of a target fails once, and then many in a row: it costs a call or a link, whose owner is told, and never
// the node.
#include <cstdlib>
#include <new>

#include "node/testing/node_test_kit.h"
#include "story.h"
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
  static Result<std::unique_ptr<Node>> create(uint32_t id) {
    auto config = Config::defaults();
    config.id = id;
    config.log = std::getenv("TC_TEST_LOG") ? "debug" : "off";
    config.code.use_bitcode = false;
    config.network.choice = *transport::parse_choice(GetParam());
    return Node::create(std::move(config), [](const Config& c, transport::Events& events) {
      return transport::Network::create(c.network, events);
    });
  }
  static std::unique_ptr<Node> make(uint32_t id) { return std::move(*create(id)); }

  // So many allocations of what `body` does succeed, and then all fail. False: it threw std::bad_alloc.
  template <class Body>
  static bool with_allocations(size_t number, Body&& body) {
    failed = 0;
    succeed = number;
    fail_then = SIZE_MAX;
    is_failing = true;
    bool ended = true;
    try {
      body();
    } catch (const std::bad_alloc&) {
      ended = false;
    }
    is_failing = false;
    fail_then = 0;
    return ended;
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
  std::shared_ptr<Future> ask(Link& link, const source::Message& message) {
    auto future = source->call(link, message, 500, Deadline::after_ms(0));
    return future ? *future : nullptr;
  }
  std::shared_ptr<Future> ask(Link& link, const std::string& ifunc, std::string_view payload) {
    return ask(link, *test::message(*source, ifunc, payload));
  }
  void scenario() {
    auto* link = reach();
    std::vector<std::shared_ptr<Future>> futures;
    std::vector<size_t>
        due;  // echo does not look at what tc_reply() returns: its caller has all of the answer, or a reason
    const std::string large(300'000, 'x');
    for (const std::string_view payload : {std::string_view("one"), std::string_view(large), std::string_view("two")}) {
      if (link->state() != Link::State::ready) break;
      if (auto future = ask(*link, "echo", payload)) {
        futures.push_back(std::move(future));
        due.push_back(payload.size());
      }
    }
    EXPECT_TRUE(until([&] { return test::all_ready(futures); })) << "every call ends";
    for (size_t i = 0; i < futures.size(); ++i) {
      const bool is_answered = futures[i]->status == TC_OK;
      EXPECT_EQ(futures[i]->message.empty(), is_answered);
      EXPECT_EQ(futures[i]->bytes.size(), is_answered ? due[i] : 0u);
    }
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

TEST_P(NoMemory, a_node_that_cannot_start_says_so_and_one_that_has_started_ends) {
  constexpr uint32_t id = 7;
  for (size_t number = 0;; ++number) {
    SCOPED_TRACE(fmt::format("{} allocations succeed, then all fail", number));
    Result<std::unique_ptr<Node>> node = fail(TC_ERR_NO_MEMORY, "none");
    with_allocations(number, [&] { node = create(id); });
    if (node) break;
    EXPECT_EQ(node.error().code, TC_ERR_NO_MEMORY) << node.error().message;
    ASSERT_LT(number, 5000u);
  }
  for (const size_t number : {0u, 1u, 2u, 3u, 10u}) {
    auto third = make(id);
    auto link = source->links().find_or_reach(third->address());
    ASSERT_TRUE(link) << link.error().message;
    const auto link_id = (*link)->id();
    const auto is_ready = [&] { return (*link)->state() != Link::State::greeting; };
    for (const auto deadline = Deadline::after_ms(20'000); !is_ready() && !deadline.passed();)
      third->poll(), source->poll();
    ASSERT_TRUE(is_ready());
    EXPECT_TRUE(with_allocations(number, [&] { third.reset(); })) << "a node's end throws nothing";
    const auto is_gone = [&] { return source->links().with_id(link_id) == nullptr; };
    EXPECT_TRUE(until(is_gone)) << "its peer has seen that";
  }
}

// A call without a header runs in a burst of others, and its failure is told from the middle of that.
TEST_P(NoMemory, a_call_that_fails_where_no_failure_can_be_told_ends_its_link) {
  for (size_t number = 0;; ++number) {
    SCOPED_TRACE(fmt::format("{} allocations succeed, then all fail", number));
    auto* const link = reach();
    const auto message = test::message(*source, "refuse", "x");
    const auto run = [&] {
      const auto before = target->executed();
      return source->send(*link, *message, false, Deadline::after_ms(0)) &&
             until([&] { return target->executed() != before || link->is_lost(); });
    };
    ASSERT_TRUE(run());  // and from now on the code is known by its number
    ASSERT_TRUE(link->is_ready());
    ASSERT_TRUE(source->send(*link, *message, false, Deadline::after_ms(0)));
    const auto before = target->executed();
    bool seen = false;
    with_allocations(number, [&] {
      for (const auto deadline = Deadline::after_ms(20'000); !seen && !deadline.passed();)
        target->poll(), seen = target->executed() != before;
    });
    EXPECT_EQ(target->executed(), before + 1);
    const bool all_succeeded = failed == 0;
    leave(*link);
    check_that_it_lives();
    if (HasFailure() || all_succeeded) break;
  }
}

// What is left of a call that failed must not answer for it when the next one runs.
TEST_P(NoMemory, a_call_of_a_node_to_itself_has_its_own_answer_or_a_reason) {
  const auto journal = std::make_unique<story_journal>();
  ASSERT_TRUE(target->expose("journal", journal.get(), sizeof *journal));
  for (size_t number = 0; number < 5000; ++number) {
    SCOPED_TRACE(fmt::format("{} allocations succeed, then 60 fail", number));
    journal->count = 0;
    auto* const link = reach();
    const story what{.id = number,
                     .sum = story_sum(nullptr, 0),
                     .end = story_replies,
                     .step = 0,
                     .steps = 1,
                     .injections = 0,
                     .route = {1}};
    const auto future = ask(*link, "story_1", {reinterpret_cast<const char*>(&what), sizeof what});
    ASSERT_NE(future, nullptr);
    ASSERT_TRUE(source->send(*link, *test::message(*source, "echo", "next"), false, Deadline::after_ms(0)));
    failed = 0;
    succeed = number;
    fail_then = 60;
    EXPECT_TRUE(until([&] { return future->ready.load(); }));
    fail_then = 0;
    const bool is_answered = future->status == TC_OK;
    EXPECT_EQ(future->bytes.size(), is_answered ? sizeof what : 0u);
    EXPECT_EQ(future->message.empty(), is_answered);
    const bool all_succeeded = failed == 0;
    link->endpoints = 0;  // a caller whose link was lost has its answer by another one, which stays
    if (HasFailure() || all_succeeded) break;
  }
  EXPECT_EQ(failed, 0u) << "the last round is one in which all succeed";
  target.reset();  // before the journal
}

// Users were bound to a library that was freed.
TEST_P(NoMemory, a_library_that_cannot_be_kept_binds_nobody) {
  struct Answer {
    char version[8];
    uint32_t result, calls;
  };
  const auto library = [](const char* version) {
    return test::renamed(test::load_bundle(std::string("library_") + version), "greeting");
  };
  ASSERT_TRUE(target->policy().allow_export("greeting_*"));
  auto& store = target->store();
  for (const bool replaces : {false, true}) {
    for (size_t number = 0; number < 2000; ++number) {
      SCOPED_TRACE(
          fmt::format("{} allocations succeed, then all fail; another version is there: {}", number, replaces));
      auto* const link = reach();
      const auto use = [&] {
        auto future = ask(*link, "uses_library", std::string_view("\5\0\0\0", 4));
        EXPECT_TRUE(until([&] { return future->ready.load(); }));
        return future;
      };
      if (replaces) {
        ASSERT_TRUE(store.load(library("one"), target::Sender{}, {}));
        ASSERT_EQ(use()->status, TC_OK);
      }
      auto bundle = library("two");
      bool is_loaded = false;
      with_allocations(number, [&] { is_loaded = store.load(std::move(bundle), target::Sender{}, {}).has_value(); });
      const bool all_succeeded = failed == 0;
      const auto future = use();
      if (is_loaded || replaces) {
        Answer answer{};
        ASSERT_EQ(future->bytes.size(), sizeof answer) << future->message;
        std::memcpy(&answer, future->bytes.data(), sizeof answer);
        EXPECT_EQ(std::string_view(answer.version), is_loaded ? "two" : "one");
        EXPECT_EQ(answer.result, is_loaded ? 1005u : 10u);
      } else {
        EXPECT_EQ(future->status, TC_ERR_UNRESOLVED) << future->message;
      }
      for (const char* version : {"one", "two"}) store.evict(library(version).id());
      leave(*link);  // which remembers that it did not link
      if (HasFailure() || all_succeeded) break;
    }
    EXPECT_EQ(failed, 0u) << "the last round is one in which all succeed";
  }
}

TEST_P(NoMemory, a_call_ends_with_its_deadline) {
  auto* const link = reach();
  const auto message = test::message(*source, "echo", "x");
  const auto future = source->call(*link, *message, 1, Deadline::after_ms(0)).value();
  const auto waits = Deadline::after_ms(20'000);
  EXPECT_TRUE(with_allocations(0, [&] {
    while (!future->ready && !waits.passed()) source->expire();
  }));
  EXPECT_EQ(future->status, TC_ERR_TIMEOUT);
  EXPECT_EQ(future->message, "no memory");
  leave(*link);
}

TEST_P(NoMemory, a_call_that_could_not_be_made_is_not_waited_for) {
  for (size_t number = 0; number < 200; ++number) {
    SCOPED_TRACE(fmt::format("{} allocations succeed, then all fail", number));
    auto* const link = reach();
    const auto message = test::message(*source, "echo", "x");
    std::shared_ptr<Future> future;
    with_allocations(number, [&] { future = ask(*link, *message); });
    EXPECT_EQ(source->futures().size(), future != nullptr ? 1u : 0u);
    EXPECT_TRUE(future == nullptr || until([&] { return future->ready.load(); }));
    const bool all_succeeded = failed == 0;
    leave(*link);
    if (HasFailure() || all_succeeded) break;
  }
}

INSTANTIATE_TEST_SUITE_P(On, NoMemory, testing::Values("shm", "tcp"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace tc::node
