// SPDX-License-Identifier: Apache-2.0
//
// How long a node sleeps when there is nothing to do.
#include "node/testing/node_test_kit.h"

namespace tc::node {
namespace {

using test::connect;

// It ended with each housekeeping, a millisecond later, and its caller looked for a while before sleeping again.
TEST(Node, an_idle_wait_sleeps_until_its_deadline) {
  test::Net net;
  auto node = net.make(1);
  for (int i = 0; i < 3; ++i) {
    for (int polls = 0; polls < 2000; ++polls) node->poll();  // enough for housekeeping
    const auto deadline = Deadline::after_ms(20);
    EXPECT_EQ(node->wait(deadline), 0u);
    EXPECT_TRUE(deadline.passed());
  }
}

// A transport that notes how long it may sleep, and is woken at once.
class Sleepless final : public transport::Transport {
 public:
  explicit Sleepless(std::vector<uint64_t>& sleeps_ns) : sleeps_ns_(sleeps_ns) {}
  Result<std::string> listen(std::string_view address) override { return std::string(address); }
  Result<std::unique_ptr<transport::Connection>> connect(std::string_view, ByteView) override {
    return tc::fail(TC_ERR_UNSUPPORTED, "nobody is there");
  }
  unsigned progress() noexcept override { return 0; }
  void flush() noexcept override {}
  void sleep(Deadline deadline) noexcept override { sleeps_ns_.push_back(deadline.remaining_ns()); }
  void wake() noexcept override {}

 private:
  std::vector<uint64_t>& sleeps_ns_;
};

// A millisecond, before: the system set its timer anew for every message of a crowded machine.
TEST(Node, housekeeping_sets_no_timer_that_is_due_before_the_next_tick) {
  std::vector<uint64_t> sleeps_ns;
  auto config = Config::defaults();
  config.log = "off";
  auto node = Node::create(std::move(config), [&](const Config&, transport::Events&) {
    return Result<std::unique_ptr<transport::Transport>>(std::make_unique<Sleepless>(sleeps_ns));
  });
  ASSERT_TRUE(node) << node.error().message;
  for (int i = 0; i < 10; ++i) (*node)->wait(Deadline::after_ms(10'000));
  EXPECT_EQ(sleeps_ns.size(), 10u);
  EXPECT_THAT(sleeps_ns, ::testing::Each(::testing::Gt(10'000'000u)));
}

}  // namespace
}  // namespace tc::node
