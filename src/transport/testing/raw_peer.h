// SPDX-License-Identifier: Apache-2.0
//
// For tests: a peer that speaks bytes, and the node that has to survive it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "transport/address.h"
#include "transport/greeting.h"
#include "transport/ring/ring.h"
#include "transport/testing/test_node.h"
#include "wire/text.h"

namespace tc::transport {

// A socket to a node, without any of our own code on this side of it.
class RawPeer {
 public:
  explicit RawPeer(Fd socket) : socket_(std::move(socket)) {}
  // Knocks where peers of this kind do: the port, or the Unix socket that belongs to it.
  RawPeer(const Kind& kind, const std::string& address)
      : RawPeer(std::move(*connect_to(kind.is_local() ? SocketAddress::local_listener_of(address)
                                                      : resolve(address, false).value().front()))) {}

  // How many of the bytes were taken. `attached`: descriptors that go with the first of them.
  size_t send(ByteView bytes, std::initializer_list<int> attached = {}) {
    iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    msghdr head{};
    head.msg_iov = &piece;
    head.msg_iovlen = 1;
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    if (attached.size() != 0) {
      head.msg_control = control;
      head.msg_controllen = CMSG_SPACE(attached.size() * sizeof(int));
      cmsghdr* const rights = CMSG_FIRSTHDR(&head);
      *rights = {
          .cmsg_len = CMSG_LEN(attached.size() * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
      std::memcpy(CMSG_DATA(rights), attached.begin(), attached.size() * sizeof(int));
    }
    const auto sent = ::sendmsg(socket_.get(), &head, MSG_NOSIGNAL | MSG_DONTWAIT);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
  void end_writing() { (void)::shutdown(socket_.get(), SHUT_WR); }
  void vanish() { socket_.reset(); }
  // Ends as a process does whose machine lost it: without disconnecting.
  void reset() {
    const linger now{.l_onoff = 1, .l_linger = 0};
    (void)setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    socket_.reset();
  }
  // Adds what has come to `received`. False when the node has ended the connection.
  bool receive() {
    for (;;) {
      std::byte buffer[4096];
      const auto got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
      if (got > 0) received.insert(received.end(), buffer, buffer + got);
      if (got == 0) return false;
      if (got < 0) return errno == EAGAIN || errno == EINTR;
    }
  }
  const Fd& socket() const { return socket_; }

  Bytes received;

 private:
  Fd socket_;
};

inline Bytes with_bit_flipped(Bytes bytes, size_t bit) {
  bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  return bytes;
}

// A node with one honest peer, the witness. Whatever a raw peer does, the node lives and the witness is served.
class AttackedNode : public testing::Test {
 protected:
  void start(const Kind& which) {
    kind = which;
    node = std::make_unique<TestNode>(kind);
    witness = std::make_unique<TestNode>(kind);
    address = node->listen();
    witness->connect(address);
    ASSERT_TRUE(poll_until([&] { return node->is_open() && witness->is_open(); }));
    to_witness = std::move(node->peer);
    node->opened = 0;
    node->when_notified = [this](Connection& connection) {
      if (&connection != to_witness.get()) (void)take_anything(connection.in());
    };
    descriptors = open_descriptors();
  }
  bool poll_until(const std::function<bool()>& done, uint64_t ms = 60'000) {
    return node->until(
        [&] {
          witness->poll();
          return done();
        },
        ms);
  }
  void poll(int times = 20) {
    for (int i = 0; i < times; ++i) node->poll(), witness->poll();
  }
  // A frame to the witness and one back.
  void expect_witness_is_served() {
    const uint32_t number = ++pings;
    ASSERT_TRUE(put_frame(to_witness->out(), number, 100) && put_frame(witness->out(), number, 100));
    const auto comes = [&](InStream& in) { return poll_until([&] { return take_frame(in, number) == Took::frame; }); };
    EXPECT_TRUE(comes(witness->in()) && comes(to_witness->in())) << "the witness is not served";
    to_witness->in().release();
    witness->in().release();
    EXPECT_FALSE(witness->lost) << witness->lost->message;
  }
  // The node has refused or lost a peer since `before`, once, for a reason that can be read.
  unsigned refusals() const { return static_cast<unsigned>(node->refused.size()) + node->losses; }
  std::string last_reason() const {
    return node->lost ? node->lost->message : node->refused.empty() ? "" : node->refused.back().message;
  }
  void expect_one_goes(RawPeer& raw, unsigned before) {
    ASSERT_TRUE(poll_until([&] { return refusals() != before; })) << "no peer was refused";
    ASSERT_TRUE(poll_until([&] { return !raw.socket() || !raw.receive(); })) << "the node keeps the connection";
    EXPECT_EQ(refusals(), before + 1);
    EXPECT_FALSE(last_reason().empty());
    EXPECT_EQ(wire::words(last_reason()), last_reason());
    forget();
  }
  void forget() {
    node->peer.reset();
    node->earlier.clear();
    node->lost.reset();
    node->refused.clear();
    node->losses = node->opened = 0;
  }
  static size_t open_descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }
  void expect_nothing_is_left() {
    forget();
    EXPECT_TRUE(poll_until([&] { return open_descriptors() <= descriptors; }, 3'000))
        << open_descriptors() << " descriptors are open when there were " << descriptors;
  }

  Kind kind{};
  std::unique_ptr<TestNode> node, witness;
  std::unique_ptr<Connection> to_witness;
  std::string address;
  uint32_t pings = 0;
  size_t descriptors = 0;
};

}  // namespace tc::transport
