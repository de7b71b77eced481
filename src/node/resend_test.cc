// SPDX-License-Identifier: Apache-2.0
//
// Code that a peer dropped, when its source may have let go of it too.
#include <malloc.h>

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {
namespace {

class Resend : public testing::Test {
 protected:
  // `budget` of the source, for code that is not registered any more.
  explicit Resend(size_t budget = 0) : source(net.make(2, [&](Config& config) { config.source_budget = budget; })) {
    running = std::make_unique<Background>(*target);
    link = connect(*source, "n1");
  }
  void drop_at_target() {
    running.reset();
    target->store().evict(load_bundle("echo").id());
    running = std::make_unique<Background>(*target);
  }
  Net net;
  std::unique_ptr<Node> target = net.make(1);
  std::unique_ptr<Node> source;
  std::unique_ptr<Background> running;
  Link* link = nullptr;
};

class ResendWithBudget : public Resend {
 protected:
  ResendWithBudget() : Resend(1 << 20) {}
};

TEST_F(Resend, registered_code_needs_no_budget_to_be_sent_again) {
  const auto echo = message(*source, "echo", "x");
  ASSERT_EQ(call(*source, *link, *echo)->status, TC_OK);
  drop_at_target();
  EXPECT_EQ(call(*source, *link, *echo)->status, TC_OK);
}

TEST_F(ResendWithBudget, code_that_was_deregistered_is_sent_again_within_the_budget) {
  const auto echo = message(*source, "echo", "x");
  ASSERT_EQ(call(*source, *link, *echo)->status, TC_OK);
  source->registry().remove(echo->ifunc());
  drop_at_target();
  EXPECT_EQ(call(*source, *link, *echo)->status, TC_OK);
}

TEST_F(Resend, code_that_neither_side_holds_fails_one_call_with_advice_and_the_next_brings_it) {
  const auto echo = message(*source, "echo", "x");
  ASSERT_EQ(call(*source, *link, *echo)->status, TC_OK);
  ASSERT_TRUE(link->sender().try_send(*echo)) << "the message is prepared with the code's number";
  ASSERT_TRUE(link->flush(Deadline::after_ms(5000)));
  source->registry().remove(echo->ifunc());
  drop_at_target();
  const auto lost = call(*source, *link, *echo);
  EXPECT_EQ(lost->status, TC_ERR_NOT_FOUND);
  EXPECT_THAT(lost->message, testing::HasSubstr("register it there again"));
  EXPECT_FALSE(link->sender().try_send(*echo)) << "that number means nothing any more";
  EXPECT_EQ(call(*source, *link, *echo)->status, TC_OK) << "the message still holds the code";
  EXPECT_EQ(call(*source, *link, *message(*source, "echo", "y"))->status, TC_OK);
}

// Another version of an ifunc, read from its file as usual. It need not run: a peer made by hand looks at nothing of it.
Bundle version_of(const Bundle& bundle, uint32_t version) {
  auto manifest = bundle.manifest();
  std::vector<Bytes> stored;
  for (size_t i = 0; i < manifest.slices.size(); ++i) {
    manifest.slices[i].compressed = false;
    stored.push_back(copy_of(bundle.stored(i)));
    Writer(stored.back()).u32(version);
  }
  return Bundle::read(Bundle::pack(std::move(manifest), std::move(stored))->bytes()).value();
}

// What the allocator has given out. Beside a sanitizer, which has an allocator of its own, it says nothing.
size_t memory_in_use() { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; }

TEST(Swapping, versions_without_end_cost_the_source_no_memory_beyond_its_budget) {
  constexpr size_t budget = 1 << 20;
  constexpr size_t numbers = 256;  // a version's number at the peer costs the link less, until it ends
  Net net;
  const auto source = net.make(2, [](Config& config) { config.source_budget = budget; });
  RawPeer peer(net.network);
  peer.says.max_message = 1 << 20;
  peer.listen("raw");
  auto* const link = source->links().reach("raw").value();
  const auto turn = [&] {
    source->poll();
    peer.progress();
    peer.frames.clear();
  };
  ASSERT_TRUE(tc::test::run_until([&] { return link->is_ready(); }, turn));
  const auto echo = load_bundle("echo");
  const auto swap = [&](uint32_t from, uint32_t to) {
    for (uint32_t version = from; version < to; ++version) {
      const auto ifunc = source->register_bundle(version_of(echo, version)).value();
      char payload = 'x';
      const auto sent = source::Message::create(ifunc, &payload, 1, 100).value();
      ASSERT_TRUE(source->send(*link, *sent, false, Deadline::after_ms(5000)));
      source->registry().remove(ifunc);
      turn();
    }
  };
  swap(0, 10);
  const auto before = memory_in_use();
  swap(10, 1010);
  const auto full = memory_in_use();
  EXPECT_LT(full, before + budget + 1000 * numbers);
  swap(1010, 2010);
  EXPECT_LT(memory_in_use(), full + 1000 * numbers);
}

// They come in one batch of frames, at whose beginning nothing waits.
TEST_F(Resend, calls_of_loaded_code_do_not_overtake_one_that_waits_for_its_code) {
  std::array<std::byte, 8> text{};
  target->expose("text", text.data(), text.size());
  // The same code with another content id.
  const auto other = renamed(load_bundle("append"), "other");
  const auto one = message(*source, "append", "1"), three = message(*source, "append", "3");
  const auto two = message(*source, other, "2");
  ASSERT_EQ(call(*source, *link, *one)->status, TC_OK);
  ASSERT_EQ(call(*source, *link, *two)->status, TC_OK);
  text[0] = std::byte{0};
  running.reset();
  target->store().evict(one->ifunc()->bundle.id());
  // The first one leaves at once, the others together.
  for (const auto* const next : {&two, &one, &two, &three}) ASSERT_TRUE(link->sender().try_send(**next));
  running = std::make_unique<Background>(*target);
  ASSERT_TRUE(link->flush(Deadline::after_ms(5000)));
  running.reset();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(text.data() + 1), 4), "2123");
}

TEST_F(Resend, messages_that_wait_count_against_the_limit_of_the_node) {
  auto small = net.make(3, [](Config& config) { config.message_memory = 1 << 20; });
  EXPECT_TRUE(small->buffers().budget().take(1 << 20)) << "nothing waits yet";
  auto* waiting = small->links().find_or_reach("n1").value();  // has not greeted: calls wait
  const auto echo = message(*small, "echo", "x");
  const auto refused = small->call(*waiting, *echo, 1000, Deadline::after_ms(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_LIMIT);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("message-memory"));
  small->buffers().budget().give(1 << 20);
  EXPECT_EQ(call(*small, *waiting, *echo)->status, TC_OK);
  EXPECT_EQ(small->buffers().budget().used(), 0u) << "what has left is given back";
}

}  // namespace
}  // namespace tc::node::test
