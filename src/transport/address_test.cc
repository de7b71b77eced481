// SPDX-License-Identifier: Apache-2.0
#include "transport/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/un.h>

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

SocketAddress first(std::string_view address) { return resolve(address, false).value().front(); }

TEST(Address, a_host_and_port_are_resolved_and_shown_as_they_were_written) {
  for (const char* text : {"127.0.0.1:7001", "10.1.2.3:0", "[::1]:65535", "0.0.0.0:80"})
    EXPECT_EQ(first(text).text(), text);
  EXPECT_EQ(first("127.0.0.1:7001").host(), "127.0.0.1");
  EXPECT_EQ(first("[::1]:7001").host(), "::1");
  EXPECT_EQ(first("127.0.0.1:7001").port(), 7001);
  EXPECT_EQ(first("[::1]:7001").any_interface(), "[::]:7001");
  EXPECT_EQ(first("127.0.0.1:7001").any_interface(), "0.0.0.0:7001");
}

TEST(Address, what_is_no_host_and_port_is_refused_and_quoted) {
  for (const char* text : {"", "host", "host:", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:7x", "127.0.0.1:http"}) {
    const auto found = resolve(text, false);
    ASSERT_FALSE(found) << text;
    EXPECT_EQ(found.error().code, TC_ERR_INVALID) << text;
    EXPECT_THAT(found.error().message, HasSubstr(std::string("'") + text + "'"));
  }
}

TEST(Address, without_a_host_it_is_every_interface_to_listen_and_this_host_to_connect) {
  EXPECT_THAT(resolve(":7001", true).value().front().host(), ::testing::AnyOf("0.0.0.0", "::"));
  EXPECT_THAT(resolve(":7001", false).value().front().host(), ::testing::AnyOf("127.0.0.1", "::1"));
}

TEST(Address, a_path_may_be_as_long_as_a_sockets_and_no_longer) {
  constexpr size_t longest = sizeof(sockaddr_un::sun_path) - 1;
  EXPECT_TRUE(SocketAddress::at_path(std::string(longest, 'x')));
  EXPECT_EQ(SocketAddress::at_path(std::string(longest + 1, 'x')).error().code, TC_ERR_INVALID);
  EXPECT_EQ(SocketAddress::at_path("").error().code, TC_ERR_INVALID);
}

TEST(Address, only_addresses_of_this_host_are_here) {
  EXPECT_TRUE(first("127.0.0.1:7001").is_here());
  EXPECT_TRUE(SocketAddress::at_path("/tmp/somewhere").value().is_here());
  EXPECT_FALSE(first("192.0.2.1:7001").is_here()) << "TEST-NET-1, which has no owner";
}

TEST(Address, a_port_that_is_taken_cannot_be_listened_at_and_the_reason_says_so) {
  const auto any = listen_at(first("127.0.0.1:0"));
  ASSERT_TRUE(any);
  const auto taken = listen_at(local_address(*any));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, TC_ERR_IO);
  EXPECT_THAT(taken.error().message, HasSubstr("in use"));
}

TEST(Address, a_local_listener_is_found_by_the_name_of_its_address_and_by_no_other) {
  const auto listener = listen_at(SocketAddress::local_listener_of("192.0.2.1:7001"));
  ASSERT_TRUE(listener);
  EXPECT_TRUE(connect_to(SocketAddress::local_listener_of("192.0.2.1:7001")));
  EXPECT_FALSE(connect_to(SocketAddress::local_listener_of("192.0.2.1:7002")));
  EXPECT_FALSE(connect_to(SocketAddress::local_listener_of("192.0.2.1:700")));
  EXPECT_FALSE(listen_at(SocketAddress::local_listener_of("192.0.2.1:7001"))) << "one process has it";
}

TEST(Address, the_two_ends_of_a_connection_name_each_other) {
  const auto listener = listen_at(first("127.0.0.1:0"));
  const auto ours = connect_to(local_address(*listener));
  ASSERT_TRUE(ours);
  EXPECT_EQ(peer_address(*ours).text(), local_address(*listener).text());
  EXPECT_EQ(socket_error(*ours), 0);
}

}  // namespace
}  // namespace tc::transport
