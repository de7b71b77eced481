// SPDX-License-Identifier: Apache-2.0
//
// The time that strangers have, on a clock of the test's: sweep() is told what time it is.
#include "transport/network/reception.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include "transport/address.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t second_ns = 1'000'000'000, long_ns = 60 * second_ns;

class AReception : public testing::Test, private Reception::Host {
 protected:
  void SetUp() override {
    ASSERT_TRUE(poller.open());
    auto listener = listen_at(resolve("127.0.0.1:0", true).value().front());
    ASSERT_TRUE(listener);
    address = local_address(*listener);
    ASSERT_TRUE(reception.open(std::move(*listener), false));
  }
  Fd connect() { return std::move(*connect_to(address)); }
  void turn() {
    for (int i = 0; i < 20; ++i) poller.wait(Deadline::after_ms(1));
  }
  static void say(const Fd& socket, ByteView bytes) {
    ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // The refusal that a stranger was told; empty: it was told nothing.
  static std::string told(const Fd& socket) {
    Bytes bytes(8192);
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return {};
    bytes.resize(static_cast<size_t>(got));
    return decode_greeting(bytes).error().message;
  }

  Poller poller;
  Farewells farewells{poller};
  Reception reception{poller, farewells, *this};
  SocketAddress address;
  std::vector<Guest> guests;
  std::vector<std::string> refused;
  bool lets_in = true;
  const Bytes greeting = encode_greeting({.transport = "tcp", .details = {}, .hello = Bytes(20)});

 private:
  Status may_connect(const Origin&) override { return lets_in ? Status{} : fail(TC_ERR_DENIED, "nobody is let in"); }
  void on_guest(Guest guest) override { guests.push_back(std::move(guest)); }
  void on_refused(const std::string& who, const Error& why) override {
    EXPECT_FALSE(who.empty());
    refused.push_back(why.message);
  }
};

TEST_F(AReception, a_stranger_that_greets_in_time_is_a_guest_and_keeps_its_place_no_longer) {
  const Fd peer = connect();
  turn();
  EXPECT_TRUE(reception.has_half_open());
  say(peer, greeting);
  turn();
  EXPECT_EQ(reception.sweep(now_ns() + long_ns), 0u);
  EXPECT_FALSE(reception.has_half_open());
  ASSERT_EQ(guests.size(), 1u);
  EXPECT_EQ(guests[0].greeting.transport, "tcp");
  EXPECT_TRUE(refused.empty());
}

TEST_F(AReception, a_stranger_that_never_finishes_its_greeting_is_dropped_at_its_deadline_and_told_why) {
  std::vector<Fd> peers;
  for (size_t size = 0; size < greeting.size(); ++size) {
    if (peers.size() == 30) break;  // one host may have 32
    peers.push_back(connect());
    say(peers.back(), ByteView(greeting).first(size));
  }
  turn();
  const uint64_t now = now_ns();
  EXPECT_GT(reception.sweep(now), now);
  EXPECT_LT(reception.sweep(now), now + 6 * second_ns);
  EXPECT_TRUE(refused.empty());
  reception.sweep(now + 6 * second_ns);
  EXPECT_FALSE(reception.has_half_open());
  EXPECT_EQ(refused, std::vector<std::string>(peers.size(), "it did not greet within 5 s"));
  turn();
  for (const Fd& peer : peers) EXPECT_EQ(told(peer), "it did not greet within 5 s");
  EXPECT_TRUE(guests.empty());
}

TEST_F(AReception, bytes_that_come_one_by_one_do_not_move_the_deadline) {
  const Fd peer = connect();
  turn();
  const uint64_t deadline = reception.sweep(now_ns());
  ASSERT_NE(deadline, 0u);
  for (size_t i = 0; i + 1 < greeting.size(); ++i) {
    say(peer, ByteView(greeting).subspan(i, 1));
    poller.poll();
    ASSERT_EQ(reception.sweep(now_ns()), deadline) << i;
  }
  reception.sweep(deadline);
  EXPECT_EQ(refused.size(), 1u);
}

TEST_F(AReception, too_many_strangers_cost_the_oldest_one_its_place) {
  std::vector<Fd> peers;
  constexpr size_t most = 256;  // of our own user
  for (size_t i = 0; i < most + 3; ++i) {
    peers.push_back(connect());
    poller.wait(Deadline::after_ms(100));
  }
  turn();
  EXPECT_EQ(refused, std::vector<std::string>(3, "others come, and it has not greeted"));
  for (size_t i = 0; i < 3; ++i) EXPECT_THAT(told(peers[i]), HasSubstr("others come"));
  EXPECT_EQ(told(peers[3]), "");
  say(peers[3], greeting);
  say(peers[most + 2], greeting);
  turn();
  EXPECT_EQ(guests.size(), 2u);
}

TEST_F(AReception, whom_the_node_does_not_let_in_is_told_so_before_it_says_a_word) {
  lets_in = false;
  const Fd peer = connect();
  turn();
  EXPECT_EQ(told(peer), "nobody is let in");
  EXPECT_FALSE(reception.has_half_open());
}

TEST_F(AReception, a_stranger_that_is_refused_and_does_not_end_its_side_is_closed_after_a_second) {
  const Fd peer = connect();
  say(peer, as_bytes("GET / HTTP/1.1\r\n\r\n"));
  turn();
  EXPECT_THAT(told(peer), HasSubstr("it says 'GET / HTTP/1'"));
  EXPECT_FALSE(farewells.empty());
  farewells.sweep(now_ns() + 2 * second_ns);
  EXPECT_TRUE(farewells.empty());
}

}  // namespace
}  // namespace tc::transport
