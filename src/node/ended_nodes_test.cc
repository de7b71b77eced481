// SPDX-License-Identifier: Apache-2.0
#include "node/ended_nodes.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"

namespace tc::node {
namespace {

class EndedNodes : public testing::Test {
 protected:
  EndedNodes() { ::setenv("THREECHAINS_HOME", home_.path().c_str(), 1); }

  void say(const std::string& address, const std::string& words) {
    const std::filesystem::path file = last_words_file(address);
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << words;
  }

 private:
  TemporaryDirectory home_ = TemporaryDirectory::create().value();
};

TEST_F(EndedNodes, the_next_node_at_an_address_takes_what_the_last_one_said) {
  say("127.0.0.1:7001", "node a ended");
  EXPECT_EQ(last_words_of("127.0.0.1:7001"), "node a ended");
  EXPECT_EQ(last_words_of("127.0.0.1:7002"), "");
  EXPECT_EQ(take_last_words("127.0.0.1:7001", "0.0.0.0:7001"), "node a ended");
  EXPECT_EQ(last_words_of("127.0.0.1:7001"), "");
}

TEST_F(EndedNodes, a_node_that_takes_any_port_does_not_speak_for_who_had_it_before) {
  for (const auto* listen : {"127.0.0.1:0", "[::1]:0", ":0"}) {
    say("127.0.0.1:7001", "node a ended");
    EXPECT_EQ(take_last_words("127.0.0.1:7001", listen), "") << listen;
    EXPECT_EQ(last_words_of("127.0.0.1:7001"), "") << listen;  // nor does anybody after it
  }
}

TEST_F(EndedNodes, a_node_that_was_given_its_socket_or_a_path_speaks_for_who_was_there) {
  for (const auto* listen : {"fd:3", "unix:/run/node"}) {
    say("127.0.0.1:7001", "node a ended");
    EXPECT_EQ(take_last_words("127.0.0.1:7001", listen), "node a ended") << listen;
  }
}

TEST_F(EndedNodes, what_is_a_day_old_or_nobody_can_print_is_not_told) {
  say("127.0.0.1:7001", "node a ended");
  std::filesystem::last_write_time(last_words_file("127.0.0.1:7001"),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(25));
  EXPECT_EQ(last_words_of("127.0.0.1:7001"), "");
  say("127.0.0.1:7002", "node\a ended");
  EXPECT_EQ(last_words_of("127.0.0.1:7002"), "");
}

}  // namespace
}  // namespace tc::node
