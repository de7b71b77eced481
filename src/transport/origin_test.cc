// SPDX-License-Identifier: Apache-2.0
#include "transport/origin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "transport/address.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

constexpr uid_t somebody_else = 65534;

SocketAddress any_port(const char* address = "127.0.0.1:0") { return resolve(address, true).value().front(); }

Fd accept_from(const Fd& listener) {
  int socket = -1;
  for (int i = 0; i < 1000 && socket < 0; ++i) {
    socket = accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) usleep(1000);
  }
  return Fd(socket);
}

// Connects as another user and stays until the returned descriptor is closed.
Fd connect_as_somebody_else(const SocketAddress& address) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return {};
  if (const pid_t child = fork(); child == 0) {
    if (fork() != 0) _exit(0);  // a grandchild of ours: it needs no wait()
    ::close(ends[0]);
    if (setuid(somebody_else) != 0) _exit(1);
    const auto socket = connect_to(address);
    char byte;
    (void)!::read(ends[1], &byte, 1);
    _exit(socket ? 0 : 1);
  } else {
    waitpid(child, nullptr, 0);
  }
  ::close(ends[1]);
  return Fd(ends[0]);
}

TEST(Origin, a_tcp_peer_of_this_host_is_an_address_and_nobody_we_know) {
  for (const char* address : {"127.0.0.1:0", "[::1]:0"}) {
    const auto listener = listen_at(any_port(address));
    if (!listener) continue;  // no IPv6 here
    const auto ours = connect_to(local_address(*listener)).value();
    const auto theirs = accept_from(*listener);
    ASSERT_TRUE(theirs);
    const auto origin = origin_of(theirs);
    EXPECT_FALSE(origin.same_user || origin.is_local || origin.on_trusted_network || origin.key) << address;
    EXPECT_TRUE(needs_encryption(origin));
    EXPECT_TRUE(origin.is_this_host && origin_of(ours).is_this_host) << address;
    EXPECT_EQ(origin.text, local_address(ours).text());
    EXPECT_EQ(origin.host, local_address(ours).host());
  }
}

TEST(Origin, a_tcp_peer_within_a_trusted_network_is_known_as_such_from_both_ends) {
  const std::vector networks{AddressRange::parse("10.0.0.0/8").value(), AddressRange::parse("127.0.0.0/30").value()};
  const auto listener = listen_at(any_port());
  const auto ours = connect_to(local_address(*listener)).value();
  const auto theirs = accept_from(*listener);
  ASSERT_TRUE(theirs);
  EXPECT_TRUE(origin_of(theirs, networks).on_trusted_network && origin_of(ours, networks).on_trusted_network);
  EXPECT_FALSE(needs_encryption(origin_of(theirs, networks)));
  EXPECT_FALSE(origin_of(theirs, std::span(networks).first(1)).on_trusted_network);
}

TEST(Origin, a_unix_peer_is_named_by_its_process_and_user) {
  const auto listener = listen_at(SocketAddress::local_listener_of("origin-test:1"));
  ASSERT_TRUE(listener);
  const auto ours = connect_to(local_address(*listener)).value();
  const auto origin = origin_of(accept_from(*listener));
  EXPECT_TRUE(origin.same_user && origin.is_local);
  EXPECT_FALSE(needs_encryption(origin));
  EXPECT_EQ(origin.host, "127.0.0.1");
  EXPECT_EQ(origin.text, fmt::format("process {} of user {}", getpid(), geteuid()));
}

TEST(Origin, a_process_of_another_user_is_not_taken_for_ours) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto tcp = listen_at(any_port()), local = listen_at(SocketAddress::local_listener_of("origin-test:2"));
  ASSERT_TRUE(tcp && local);
  for (const auto* listener : {&*tcp, &*local}) {
    const Fd peer = connect_as_somebody_else(local_address(*listener));
    ASSERT_TRUE(peer);
    const auto accepted = accept_from(*listener);
    ASSERT_TRUE(accepted);
    EXPECT_FALSE(origin_of(accepted).same_user);
  }
}

TEST(Origin, a_socket_that_is_not_connected_has_none) { EXPECT_FALSE(origin_of(Fd()).same_user); }

}  // namespace
}  // namespace tc::transport
