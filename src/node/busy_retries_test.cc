// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "node/rates.h"
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using testing::HasSubstr;

TEST(PausesBetweenRetries, are_random_and_twice_as_long_each_time_up_to_a_limit) {
  for (const uint64_t random : {uint64_t{0}, uint64_t{1}, uint64_t{12'345'678'901}, UINT64_MAX}) {
    BusyRetries retries;
    for (uint64_t most = BusyRetries::first_ns; most < 100 * BusyRetries::most_ns; most *= 2) {
      const auto pause = retries.next_pause_ns(random);
      EXPECT_GT(pause, 0u);
      EXPECT_LE(pause, std::min(most, BusyRetries::most_ns));
    }
    EXPECT_EQ(retries.next_pause_ns(BusyRetries::most_ns - 1), BusyRetries::most_ns);
  }
}

// A peer that has no room for the first ones that come.
class ABusyPeer : public testing::Test {
 protected:
  ABusyPeer() { peer.listen("busy"); }
  Result<Link*> connect(unsigned refusals, tc_status_t why, Deadline deadline) {
    peer.refusals = refusals;
    peer.refusal = Error{why, "too many peers connect to this node"};
    std::jthread serving([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        peer.progress();
        std::this_thread::yield();
      }
    });
    return node->connect("busy", deadline);
  }

  test::Net net;
  std::unique_ptr<Node> node = net.make(1);
  test::RawPeer peer{net.network};
};

TEST_F(ABusyPeer, is_asked_again_until_it_has_room) {
  const auto link = connect(5, TC_ERR_LIMIT, Deadline::after_ms(60'000));
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_EQ(peer.refusals, 0u);
  EXPECT_TRUE((*link)->is_ready());
  EXPECT_EQ(node->stat("dropped-links"), 5u);
}

TEST_F(ABusyPeer, is_asked_until_the_deadline_and_its_refusal_is_what_the_caller_gets) {
  const auto link = connect(UINT32_MAX, TC_ERR_LIMIT, Deadline::after_ms(300));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, TC_ERR_LIMIT);
  EXPECT_THAT(link.error().message, HasSubstr("too many peers connect"));
  EXPECT_LT(peer.refusals, UINT32_MAX - 1) << "it was asked once";
}

TEST_F(ABusyPeer, that_refuses_for_another_reason_is_not_asked_again) {
  const auto link = connect(UINT32_MAX, TC_ERR_DENIED, Deadline::after_ms(60'000));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, TC_ERR_DENIED);
  EXPECT_EQ(peer.refusals, UINT32_MAX - 1);
}

}  // namespace
}  // namespace tc::node
