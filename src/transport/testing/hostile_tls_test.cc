// SPDX-License-Identifier: Apache-2.0
//
// What peers may do on encrypted connections, before, in and after the handshake; and what the two sides make of each
// other when one of them does not encrypt. trust/tls/session_test.cc has the handshake itself.
#include <gmock/gmock.h>

#include "transport/testing/raw_peer.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view hello_begins = "\x16\x03\x01\x02";

// A raw peer that encrypts: its session is right, what it says in it need not be.
class RawTlsPeer {
 public:
  explicit RawTlsPeer(const std::string& address)
      : context_(trust::open_tls(std::make_shared<const trust::KeyPair>(trust::KeyPair::fresh().value()), TC_TLS_PLUGIN)
                     .value()),
        session(context_->make_session(trust::TlsRole::client).value()),
        raw(encrypted_kind, address) {}
  // True: the handshake is complete on this side.
  bool shake_hands() {
    const bool complete = session->handshake().value();
    flush();
    if (!complete) take();
    return complete;
  }
  void say(ByteView plain) {
    ASSERT_EQ(session->write(plain).value(), plain.size());
    flush();
  }
  void flush() {
    const size_t sent = raw.send(session->to_send());
    session->sent(sent);
  }
  // What has come, decrypted. False: the end.
  bool take() {
    const bool goes_on = raw.receive();
    const size_t count = std::min(session->room().size(), raw.received.size());
    std::copy_n(raw.received.begin(), count, session->room().begin());
    session->received(count);
    raw.received.erase(raw.received.begin(), raw.received.begin() + static_cast<std::ptrdiff_t>(count));
    return goes_on;
  }
  Bytes heard() {
    Bytes plain(20'000);
    plain.resize(session->read(plain).value_or(0));
    return plain;
  }

 private:
  std::unique_ptr<trust::TlsContext> context_;

 public:
  std::unique_ptr<trust::TlsSession> session;
  RawPeer raw;
};

class AnEncryptedNode : public AttackedNode {
 protected:
  void SetUp() override {
    start(encrypted_kind);
    node->when_notified = [this](Connection& connection) {
      if (&connection == to_witness.get()) return;
      while (take_frame(connection.in(), frames) == Took::frame) ++frames;
      connection.in().release();
    };
  }
  void shake_hands(RawTlsPeer& peer) {
    ASSERT_TRUE(poll_until([&] { return peer.shake_hands(); }));
  }
  void greet(RawTlsPeer& peer) {
    shake_hands(peer);
    peer.say(encode_greeting({"tls", {}, Bytes(10)}));
    Bytes answer;
    ASSERT_TRUE(poll_until([&] {
      peer.take();
      const Bytes more = peer.heard();
      answer.insert(answer.end(), more.begin(), more.end());
      return node->opened == 1 && answer.size() > greeting_head_bytes;
    }));
    EXPECT_TRUE(decode_greeting(answer));
  }
  uint32_t frames = 0;
};

TEST_F(AnEncryptedNode, serves_its_peers_while_a_thousand_handshakes_stand_still) {
  std::vector<RawPeer> half_open;
  for (int i = 0; i < 1000; ++i) {
    half_open.emplace_back(encrypted_kind, address);
    if (i % 2 == 0) (void)half_open.back().send(as_bytes(hello_begins));
    poll(1);
    if (i % 100 == 0) expect_witness_is_served();
  }
  TestNode late(encrypted_kind);
  late.connect(address);
  EXPECT_TRUE(poll_until([&] {
    late.poll();
    return late.is_open();
  })) << (late.lost ? late.lost->message : "it waits");
  expect_witness_is_served();
  half_open.clear();
  late.peer.reset();
  late.poll();
  forget();
}

TEST_F(AnEncryptedNode, refuses_a_plain_peer_and_says_what_to_do) {
  TestNode plain(socket_kind);
  plain.connect(address);
  ASSERT_TRUE(poll_until([&] {
    plain.poll();
    return plain.lost.has_value();
  }));
  EXPECT_EQ(plain.lost->code, TC_ERR_DENIED);
  EXPECT_THAT(plain.lost->message, HasSubstr("takes only encrypted connections from 127.0.0.1"));
  EXPECT_THAT(plain.lost->message, HasSubstr("trust-network"));
  EXPECT_EQ(node->accepted, 1u) << "the witness alone";
}

TEST_F(AnEncryptedNode, refuses_inside_the_session_a_peer_that_may_not_connect) {
  node->admits = [](const Origin& origin) { return !origin.key; };
  RawTlsPeer peer(address);
  shake_hands(peer);
  Bytes heard;
  ASSERT_TRUE(poll_until([&] {
    peer.take();
    const Bytes more = peer.heard();
    heard.insert(heard.end(), more.begin(), more.end());
    return heard.size() > greeting_head_bytes;
  }));
  const auto refusal = decode_greeting(heard);
  ASSERT_FALSE(refusal);
  EXPECT_THAT(refusal.error().message, HasSubstr("this origin is refused"));
}

TEST_F(AnEncryptedNode, takes_no_transport_by_another_name_inside_a_session) {
  for (const char* name : {"tcp", "shm", "unix"}) {
    RawTlsPeer peer(address);
    const unsigned before = refusals();
    shake_hands(peer);
    peer.say(encode_greeting({name, {}, Bytes(10)}));
    ASSERT_TRUE(poll_until([&] { return refusals() != before; }));
    EXPECT_THAT(last_reason(), HasSubstr("does not accept"));
  }
}

TEST_F(AnEncryptedNode, runs_frames_that_come_with_the_last_bytes_of_a_greeting) {
  RawTlsPeer peer(address);
  shake_hands(peer);
  Bytes all = encode_greeting({"tls", {}, Bytes(10)});
  for (uint32_t i = 0; i < 3; ++i) {
    const Bytes frame = frame_bytes(i, 100);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  peer.say(all);
  EXPECT_TRUE(poll_until([&] { return frames == 3; })) << frames;
}

TEST_F(AnEncryptedNode, loses_a_peer_whose_record_is_changed_on_its_way_and_runs_nothing_of_it) {
  for (size_t place : {0u, 1u, 5u, 6u, 60u, 120u}) {
    RawTlsPeer peer(address);
    frames = 0;
    greet(peer);
    ASSERT_TRUE(peer.session->write(frame_bytes(0, 100)));
    Bytes sealed(peer.session->to_send().begin(), peer.session->to_send().end());
    sealed[place] ^= std::byte{1};
    (void)peer.raw.send(sealed);
    ASSERT_TRUE(poll_until([&] { return node->lost.has_value(); })) << place;
    EXPECT_EQ(node->lost->code, TC_ERR_MALFORMED) << node->lost->message;
    EXPECT_EQ(frames, 0u);
    forget();
  }
  expect_witness_is_served();
}

TEST_F(AnEncryptedNode, loses_a_peer_that_is_cut_off_at_any_byte_and_runs_the_whole_frames_before) {
  for (size_t cut = 0; cut < 130; cut += 7) {
    RawTlsPeer peer(address);
    frames = 0;
    greet(peer);
    peer.say(frame_bytes(0, 20));
    ASSERT_TRUE(peer.session->write(frame_bytes(1, 100)));
    const ByteView sealed = peer.session->to_send();
    ASSERT_GT(sealed.size(), cut);
    (void)peer.raw.send(sealed.first(cut));
    peer.raw.end_writing();
    ASSERT_TRUE(poll_until([&] { return node->lost.has_value(); })) << cut;
    EXPECT_EQ(node->lost->code, TC_ERR_DISCONNECTED) << node->lost->message;
    EXPECT_EQ(frames, 1u);
    forget();
  }
  expect_witness_is_served();
}

TEST_F(AnEncryptedNode, survives_noise_behind_the_first_byte_of_a_handshake) {
  Random random(5);
  for (int round = 0; round < 100; ++round) {
    const unsigned before = refusals();
    Bytes noise(20 + random.below(9'000));
    for (auto& byte : noise) byte = static_cast<std::byte>(random.next());
    noise[0] = std::byte{0x16};
    if (round % 2 == 0) std::memcpy(noise.data(), "\x16\x03\x01\x20\x00\x01\x00\x1f\xfc\x03\x03", 11);
    RawPeer raw(encrypted_kind, address);
    (void)raw.send(noise);
    raw.end_writing();
    ASSERT_TRUE(poll_until([&] { return refusals() != before; })) << round;
  }
  expect_witness_is_served();
  expect_nothing_is_left();
}

// ---- Between two nodes.

struct Pair {
  explicit Pair(const NetworkOptions& one, const NetworkOptions& two) : a(one), b(two) { a.connect(b.listen()); }
  bool poll_until(const std::function<bool()>& done) {
    return a.until(
        [&] {
          b.poll();
          return done();
        },
        10'000);
  }
  TestNode a, b;
};

NetworkOptions with_key(const Kind& kind, std::shared_ptr<const trust::KeyPair>& key) {
  key = std::make_shared<const trust::KeyPair>(trust::KeyPair::fresh().value());
  auto options = options_of(kind);
  options.key = key;
  return options;
}

TEST(EncryptedNodes, know_each_other_by_their_keys) {
  std::shared_ptr<const trust::KeyPair> of_a, of_b;
  Pair pair(with_key(encrypted_kind, of_a), with_key(encrypted_kind, of_b));
  ASSERT_TRUE(pair.poll_until([&] { return pair.a.is_open() && pair.b.is_open(); }));
  EXPECT_EQ(pair.a.peer->origin().key, of_b->public_key());
  EXPECT_EQ(pair.b.peer->origin().key, of_a->public_key());
  EXPECT_EQ(pair.a.answered, 1u);
}

TEST(EncryptedNodes, say_nothing_to_one_that_is_not_expected) {
  Pair pair(options_of(encrypted_kind), options_of(encrypted_kind));
  pair.a.expects = [](const Origin& origin) { return !origin.key; };
  ASSERT_TRUE(pair.poll_until([&] { return pair.a.lost && !pair.b.refused.empty(); }));
  EXPECT_EQ(pair.a.lost->code, TC_ERR_DENIED);
  EXPECT_THAT(pair.a.lost->message, HasSubstr("another one answers at 127.0.0.1:"));
  EXPECT_EQ(pair.b.accepted, 0u);
}

TEST(EncryptedNodes, connect_also_where_one_side_alone_trusts_the_network) {
  Pair pair(options_of(encrypted_kind), options_of(socket_kind));
  ASSERT_TRUE(pair.poll_until([&] { return pair.a.is_open() && pair.b.is_open(); }));
  EXPECT_EQ(pair.a.peer->transport(), "tls");
  EXPECT_TRUE(pair.b.peer->origin().key && pair.b.peer->origin().on_trusted_network);
}

TEST(EncryptedNodes, without_the_plug_in_fail_with_what_to_do) {
  auto options = options_of(encrypted_kind);
  options.tls_plugin = "/nowhere/libthreechains_tls.so";
  for (const bool client : {false, true}) {
    Pair pair(client ? options : options_of(encrypted_kind), client ? options_of(encrypted_kind) : options);
    ASSERT_TRUE(pair.poll_until([&] { return pair.a.lost.has_value(); }));
    EXPECT_EQ(pair.a.lost->code, TC_ERR_UNSUPPORTED);
    EXPECT_THAT(pair.a.lost->message, HasSubstr("install libthreechains_tls.so")) << client;
  }
}

// A man in the middle cannot make a node send plain bytes: it sends nothing but its hello.
TEST(EncryptedNodes, never_fall_back_to_plain) {
  auto listener = listen_at(resolve("127.0.0.1:0", true).value().front()).value();
  TestNode node(encrypted_kind);
  node.connect(local_address(listener).text(), "a secret");
  Fd socket;
  ASSERT_TRUE(node.until([&] {
    socket = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return static_cast<bool>(socket);
  }));
  RawPeer raw(std::move(socket));
  ASSERT_TRUE(node.until([&] { return raw.receive() && !raw.received.empty(); }));
  (void)raw.send(encode_greeting({"tcp", {}, Bytes(10)}));
  ASSERT_TRUE(node.until([&] { return node.lost.has_value(); }));
  EXPECT_THAT(node.lost->message, HasSubstr("it answered without encryption"));
  (void)raw.receive();
  EXPECT_EQ(raw.received[0], std::byte{0x16});
  EXPECT_EQ(as_text(raw.received).find("a secret"), std::string_view::npos);
}

}  // namespace
}  // namespace tc::transport
