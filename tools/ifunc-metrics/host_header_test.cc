// SPDX-License-Identifier: Apache-2.0
#include "ifunc-metrics/host_header.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tc::metrics {
namespace {

const std::vector<std::string> names = {"node1.example.org", "Node1"};

TEST(HostHeader, of_a_number_of_localhost_or_of_a_name_that_was_set_is_for_us) {
  for (const auto* const header :
       {"127.0.0.1", "127.0.0.1:9464", "10.0.0.7:9464", "[::1]", "[::1]:9464", "localhost", "LOCALHOST:9464",
        "localhost.:9464", "node1.example.org", "NODE1.example.ORG:9464", "node1:1", "node1:"})
    EXPECT_TRUE(is_for_us(header, names)) << header;
}

TEST(HostHeader, a_name_may_be_set_with_a_port_or_a_last_dot) {
  const std::vector<std::string> names = {"node1:9464", "node2.example.org."};
  EXPECT_TRUE(is_for_us("node1", names));
  EXPECT_TRUE(is_for_us("node2.example.org:80", names));
  EXPECT_FALSE(is_for_us("node3", names));
}

TEST(HostHeader, of_any_other_name_is_not) {
  for (const auto* const header : {"",
                                   ":",
                                   ":9464",
                                   "evil.example",
                                   "evil.example:9464",
                                   "127.0.0.1.evil.example",
                                   "127.0.0.1.evil.example:9464",
                                   "localhost.evil.example",
                                   "evil.localhost",
                                   "node1.example.org.evil.example",
                                   "xnode1",
                                   "node",
                                   "[evil.example]",
                                   "[::1",
                                   "::1]",
                                   "[]",
                                   "[",
                                   "]",
                                   "127.0.0.1:9464:evil",
                                   "127.0.0.1 ",
                                   "127.1",
                                   "0x7f000001",
                                   "2130706433",
                                   "..",
                                   "localhost..",
                                   "localhost:port",
                                   "[::1].evil.example",
                                   "[::1]x:9464"})
    EXPECT_FALSE(is_for_us(header, names)) << header;
  EXPECT_FALSE(is_for_us("node1", {}));
}

}  // namespace
}  // namespace tc::metrics
