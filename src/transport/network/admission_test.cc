// SPDX-License-Identifier: Apache-2.0
//
// The time that unauthenticated peers have, on a clock of the test's: sweep() is given the time.
#include "transport/network/admission.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "transport/address.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t second_ns = 1'000'000'000, long_ns = 60 * second_ns;

struct TestEvents final : Events {
  Status may_connect(const Origin&) override {
    return allows ? Status{} : fail(TC_ERR_DENIED, "this origin is refused");
  }
  void on_accept(std::unique_ptr<Connection>, ByteView) override {}
  void on_greeting(Connection&, ByteView) override {}
  void on_frames(Connection&) override {}
  void on_lost(Connection&, const Error&) override {}
  void on_refused(const std::string& origin, const Error& why) override {
    EXPECT_FALSE(origin.empty());
    refused.push_back(why.message);
  }

  bool allows = true;
  std::vector<std::string> refused;
};

// Makes sessions with a key of its own.
struct TestSessions {
  Result<std::unique_ptr<trust::TlsSession>> make(trust::TlsRole role) {
    if (has_no_memory) throw std::bad_alloc();
    if (tls == nullptr)
      tls = trust::open_tls(std::make_shared<const trust::KeyPair>(trust::KeyPair::fresh().value()), TC_TLS_PLUGIN)
                .value();
    return tls->make_session(role);
  }
  std::unique_ptr<trust::TlsContext> tls;
  bool has_no_memory = false;
};

class AnAdmission : public testing::Test {
 protected:
  void SetUp() override {
    hub.trusted_networks = networks;
    ASSERT_TRUE(poller.open());
    auto listener = listen_at(resolve("127.0.0.1:0", true).value().front());
    ASSERT_TRUE(listener);
    address = local_address(*listener);
    ASSERT_TRUE(admission.open(std::move(*listener), false));
  }
  Fd connect() { return std::move(*connect_to(address)); }
  // By an admission that learns now how many descriptors there may be.
  Status open_with_another(Fd listener) {
    Admission another(hub, {});
    return another.open(std::move(listener), true);
  }
  void poll() {
    for (int i = 0; i < 20; ++i) poller.wait(Deadline::after_ms(1));
  }
  static void send(const Fd& socket, ByteView bytes) {
    ASSERT_EQ(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // The reason that was sent to a refused peer; empty: none.
  static std::string refusal_to(const Fd& socket) {
    Bytes bytes(8192);
    const auto got = ::recv(socket.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got <= 0) return {};
    bytes.resize(static_cast<size_t>(got));
    return decode_greeting(bytes).error().message;
  }

  TestEvents events;
  std::vector<std::string>& refused = events.refused;
  PollState poll_state;
  TestSessions sessions;
  Hub hub{events, poll_state, [this](trust::TlsRole role) { return sessions.make(role); }};
  Poller& poller = hub.poller;
  Admission admission{hub, [this](GreetedPeer peer) { greeted.push_back(std::move(peer)); }};
  std::vector<AddressRange> networks{AddressRange::parse("127.0.0.0/8").value()};
  SocketAddress address;
  std::vector<GreetedPeer> greeted;
  const Bytes greeting = encode_greeting({.transport = "tcp", .details = {}, .hello = Bytes(20)});
};

TEST_F(AnAdmission, a_peer_that_greets_in_time_is_handed_over_and_is_pending_no_longer) {
  const Fd peer = connect();
  poll();
  EXPECT_TRUE(admission.has_pending());
  send(peer, greeting);
  poll();
  EXPECT_EQ(admission.sweep(now_ns() + long_ns), 0u);
  EXPECT_FALSE(admission.has_pending());
  ASSERT_EQ(greeted.size(), 1u);
  EXPECT_EQ(greeted[0].greeting.transport, "tcp");
  EXPECT_TRUE(refused.empty());
}

TEST_F(AnAdmission, a_peer_that_never_finishes_its_greeting_is_refused_at_its_deadline_with_the_reason) {
  std::vector<Fd> peers;
  for (size_t size = 0; size < greeting.size(); ++size) {
    if (peers.size() == 30) break;
    peers.push_back(connect());
    send(peers.back(), ByteView(greeting).first(size));
  }
  poll();
  const uint64_t now = now_ns();
  EXPECT_GT(admission.sweep(now), now);
  EXPECT_LT(admission.sweep(now), now + 6 * second_ns);
  EXPECT_TRUE(refused.empty());
  admission.sweep(now + 6 * second_ns);
  EXPECT_FALSE(admission.has_pending());
  EXPECT_EQ(refused, std::vector<std::string>(peers.size(), "it did not greet within 5 s"));
  poll();
  for (const Fd& peer : peers) EXPECT_EQ(refusal_to(peer), "it did not greet within 5 s");
  EXPECT_TRUE(greeted.empty());
}

TEST_F(AnAdmission, bytes_that_come_one_by_one_do_not_move_the_deadline) {
  const Fd peer = connect();
  poll();
  const uint64_t deadline = admission.sweep(now_ns());
  ASSERT_NE(deadline, 0u);
  for (size_t i = 0; i + 1 < greeting.size(); ++i) {
    send(peer, ByteView(greeting).subspan(i, 1));
    poller.poll();
    ASSERT_EQ(admission.sweep(now_ns()), deadline) << i;
  }
  admission.sweep(deadline);
  EXPECT_EQ(refused.size(), 1u);
}

TEST_F(AnAdmission, too_many_pending_peers_of_one_host_evict_as_many_of_them_and_all_others_are_served) {
  std::vector<Fd> peers;
  constexpr size_t most = 128;  // of one host
  for (size_t i = 0; i < most + 3; ++i) {
    peers.push_back(connect());
    poller.wait(Deadline::after_ms(100));
  }
  poll();
  EXPECT_EQ(refused, std::vector<std::string>(3, "too many peers connect to this node"));
  size_t told = 0;
  for (const Fd& peer : peers) {
    if (!refusal_to(peer).empty()) {
      ++told;
      continue;
    }
    send(peer, greeting);
    poller.poll();
  }
  poll();
  EXPECT_EQ(told, 3u);
  EXPECT_EQ(greeted.size(), most);
}

// A descriptor number that is free: each peer that is accepted takes one.
int next_descriptor() { return Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get(); }

TEST_F(AnAdmission, accepts_64_peers_in_one_poll_so_that_others_are_served_in_between) {
  std::vector<Fd> peers;
  for (size_t i = 0; i < 100; ++i) peers.push_back(connect());
  const int before = next_descriptor();
  poller.poll();
  EXPECT_EQ(next_descriptor(), before + 64);
  poller.poll();
  EXPECT_EQ(next_descriptor(), before + 100);
}

TEST_F(AnAdmission, a_plain_peer_of_a_refused_origin_is_told_so_before_its_greeting_is_read) {
  events.allows = false;
  const Fd peer = connect();
  send(peer, ByteView(greeting).first(1));
  poll();
  EXPECT_EQ(refusal_to(peer), "this origin is refused");
  EXPECT_EQ(admission.sweep(now_ns()), 0u);
}

TEST_F(AnAdmission, a_plain_peer_from_elsewhere_is_told_that_it_must_encrypt) {
  hub.trusted_networks = {};
  const Fd peer = connect();
  send(peer, ByteView(greeting).first(1));
  poll();
  EXPECT_THAT(refusal_to(peer), HasSubstr("takes only encrypted connections from 127.0.0.1"));
  EXPECT_TRUE(greeted.empty());
}

// ---- Encrypted peers.

constexpr std::string_view hello_begins = "\x16\x03\x01\x02";

TEST_F(AnAdmission, a_peer_that_never_finishes_its_first_message_is_told_so_in_plain_at_its_deadline) {
  const Fd peer = connect();
  send(peer, as_bytes(hello_begins));
  poll();
  EXPECT_TRUE(refused.empty());
  admission.sweep(now_ns() + 6 * second_ns);
  EXPECT_EQ(refused, std::vector<std::string>{"it did not greet within 5 s"});
  EXPECT_FALSE(admission.has_pending());
  poll();
  EXPECT_EQ(refusal_to(peer), "it did not greet within 5 s");
}

TEST_F(AnAdmission, a_peer_for_whose_handshake_there_is_no_memory_is_refused_and_the_next_one_is_not) {
  sessions.has_no_memory = true;
  const Fd peer = connect();
  send(peer, as_bytes(hello_begins));
  poll();
  EXPECT_EQ(refused.size(), 1u);
  EXPECT_NE(refusal_to(peer), "");
  EXPECT_EQ(admission.sweep(now_ns()), 0u);
  sessions.has_no_memory = false;
  const Fd next = connect();
  send(next, as_bytes(hello_begins));
  poll();
  EXPECT_EQ(refused.size(), 1u);
  EXPECT_TRUE(admission.has_pending());
}

// The first message of a client: what it sends before it has heard anything.
Bytes first_message(Hub& hub) {
  auto session = hub.make_session(trust::TlsRole::client).value();
  EXPECT_FALSE(session->handshake().value());
  const auto message = session->to_send();
  return {message.begin(), message.end()};
}

TEST_F(AnAdmission, a_peer_that_never_finishes_a_handshake_that_was_answered_is_closed_without_a_word) {
  const Fd peer = connect();
  send(peer, first_message(hub));
  Bytes answer(16 * 1024);
  for (const auto deadline = Deadline::after_ms(10'000); !deadline.passed();) {
    poll();
    if (::recv(peer.get(), answer.data(), answer.size(), MSG_DONTWAIT) > 0) break;
  }
  EXPECT_EQ(answer[0], std::byte{0x16});
  admission.sweep(now_ns() + 6 * second_ns);
  EXPECT_EQ(refused, std::vector<std::string>{"it did not greet within 5 s"});
  poll();
  EXPECT_EQ(::recv(peer.get(), answer.data(), answer.size(), MSG_DONTWAIT), 0) << "nothing that looks like a record";
}

TEST_F(AnAdmission, handshakes_that_are_not_finished_keep_nobody_waiting) {
  std::vector<Fd> slow;
  for (size_t i = 0; i < 127; ++i) {
    slow.push_back(connect());
    send(slow.back(), as_bytes(hello_begins));
    poller.wait(Deadline::after_ms(100));
  }
  const Fd peer = connect();
  send(peer, as_bytes(std::string_view("\x16\x03\x01\x00\x05hello", 10)));  // is refused as soon as it is read
  for (const auto deadline = Deadline::after_ms(10'000); refused.empty() && !deadline.passed();) poll();
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_THAT(refused[0], HasSubstr("the encrypted handshake failed"));
}

// This process may open so many file descriptors as long as this lives.
struct DescriptorLimit {
  explicit DescriptorLimit(rlim_t limit) {
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit lower{limit, before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &lower), 0);
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &before); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;
  rlimit before{};
};

TEST_F(AnAdmission, a_peer_for_which_there_is_no_descriptor_is_dropped_and_said_to_be_and_the_next_one_too) {
  for (size_t i = 1; i <= 2; ++i) {
    const Fd peer = connect();
    {
      const DescriptorLimit lower(static_cast<rlim_t>(next_descriptor()));
      poll();
    }
    EXPECT_EQ(refused, std::vector<std::string>(i, "this process has no more file descriptors"));
    char byte;
    EXPECT_LE(::recv(peer.get(), &byte, 1, MSG_DONTWAIT), 0);
    EXPECT_FALSE(would_block(::recv(peer.get(), &byte, 1, MSG_DONTWAIT))) << "it was not closed";
  }
  EXPECT_EQ(admission.sweep(now_ns()), 0u);
}

TEST_F(AnAdmission, listens_for_nobody_when_no_peer_could_be_taken_and_says_what_it_needs) {
  auto listener = listen_at(resolve("127.0.0.1:0", true).value().front());
  ASSERT_TRUE(listener);
  const auto limit = static_cast<rlim_t>(listener->get() + 10);
  const DescriptorLimit lower(limit);
  const auto opened = open_with_another(std::move(*listener));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, TC_ERR_LIMIT);
  EXPECT_THAT(opened.error().message, HasSubstr(fmt::format("may open {} file descriptors (ulimit -n)", limit)));
  EXPECT_THAT(opened.error().message, HasSubstr("when it needs "));
}

TEST_F(AnAdmission, a_refused_peer_that_does_not_end_its_side_is_closed_after_a_second) {
  const Fd peer = connect();
  send(peer, as_bytes("GET / HTTP/1.1\r\n\r\n"));
  poll();
  EXPECT_THAT(refusal_to(peer), HasSubstr("it says 'GET / HTTP/1'"));
  EXPECT_FALSE(hub.closing_sockets.empty());
  hub.closing_sockets.sweep(now_ns() + 2 * second_ns);
  EXPECT_TRUE(hub.closing_sockets.empty());
}

}  // namespace
}  // namespace tc::transport
