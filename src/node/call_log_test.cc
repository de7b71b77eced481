// SPDX-License-Identifier: Apache-2.0
//
// Calls that log without end.
#include "node/call_log.h"

#include "node/testing/keyring_kit.h"

namespace tc::node::test {
namespace {

using ::testing::HasSubstr;

class Chatter : public WithKeyring {
 protected:
  static std::string lines(uint32_t count) { return {reinterpret_cast<const char*>(&count), sizeof count}; }
  static std::string lines(uint32_t count, uint32_t node) { return lines(count) + lines(node); }
  size_t count(const std::string& what) {
    size_t count = 0;
    const auto all = logged();
    for (size_t at = 0; (at = all.find(what, at)) != std::string::npos; ++at) ++count;
    return count;
  }
  Bundle chatter = load_bundle("chatter");
};

TEST_F(Chatter, a_call_that_logs_without_end_writes_a_hundred_lines_and_the_log_says_how_many_it_lacks) {
  start(ana.line("run=any"));
  EXPECT_EQ(call(*peer(2, ana), chatter, lines(100'000))->status, TC_OK);
  ASSERT_TRUE(wait_for_log("were left out"));
  const auto written = count("ifunc 'chatter': all is well");
  EXPECT_GE(written, CallLog::lines_at_once);
  EXPECT_LT(written, CallLog::lines_at_once + 1000);
  EXPECT_THAT(logged(), HasSubstr(fmt::format("{} lines of ifunc 'chatter' from node 2 (test2) were left out: 100 are "
                                              "written at once, and 10 a second, of each ifunc and peer",
                                              100'000 - written)));
  EXPECT_LT(logged().size(), 200'000u);
}

TEST_F(Chatter, lines_of_other_ifuncs_and_of_other_peers_are_there_all_the_same) {
  start(ana.line("run=any") + bob.line("run=any"));
  const auto client = peer(2, ana);
  EXPECT_EQ(call(*client, chatter, lines(10'000))->status, TC_OK);
  EXPECT_EQ(call(*client, renamed(chatter, "other"), lines(50))->status, TC_OK);
  EXPECT_EQ(count("ifunc 'other': all is well"), 50u);
  EXPECT_EQ(call(*peer(3, bob), renamed(chatter, "bobs"), lines(50))->status, TC_OK);
  EXPECT_EQ(count("ifunc 'bobs': all is well"), 50u);
}

TEST_F(Chatter, a_peer_with_many_ifuncs_is_limited_too) {
  start(ana.line("run=any"));
  const auto client = peer(2, ana);
  for (int i = 0; i < 30; ++i)
    EXPECT_EQ(call(*client, renamed(chatter, fmt::format("c{}", i)), lines(1000))->status, TC_OK);
  ASSERT_TRUE(wait_for_log("were left out"));
  EXPECT_LT(count("all is well"), 2500u) << "30 times a hundred without that limit";
  EXPECT_THAT(logged(), HasSubstr("ifuncs from node 2 (test2) were left out"));
}

TEST_F(Chatter, what_the_node_says_of_a_call_is_limited_too) {
  start(ana.line("run=any"));
  EXPECT_EQ(call(*peer(2, ana), chatter, lines(10'000, 4711))->status, TC_OK);
  ASSERT_TRUE(wait_for_log("were left out"));
  const auto written = count("there is no node 4711");
  EXPECT_GE(written, CallLog::lines_at_once);
  EXPECT_LT(written, CallLog::lines_at_once + 1000);
}

TEST_F(Chatter, is_limited_on_another_thread_too) {
  start(ana.line("run=any"), [](Config& config) { config.threads = 2; });
  const auto client = peer(2, ana);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call(*client, chatter, lines(20'000))->status, TC_OK);
  ASSERT_TRUE(wait_for_log("were left out"));
  EXPECT_LT(count("all is well"), 1000u);
}

TEST_F(Chatter, lines_below_the_level_of_the_log_are_not_counted) {
  start(ana.line("run=any"), [](Config& config) { config.log = "error"; });
  EXPECT_EQ(call(*peer(2, ana), chatter, lines(10'000))->status, TC_OK);
  running.reset();
  target.reset();
  EXPECT_EQ(logged(), "");
}

TEST_F(Chatter, a_node_that_ends_says_how_many_lines_its_log_lacks) {
  start(ana.line("run=any"));
  EXPECT_EQ(call(*peer(2, ana), chatter, lines(1000))->status, TC_OK);
  running.reset();
  target.reset();
  EXPECT_THAT(logged(), HasSubstr("lines of ifunc 'chatter' from node 2 (test2) were left out"));
}

}  // namespace
}  // namespace tc::node::test
