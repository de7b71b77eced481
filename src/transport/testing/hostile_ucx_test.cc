// SPDX-License-Identifier: Apache-2.0
//
// What a peer may do that was accepted and speaks UCX by itself: messages with wrong prefixes, gaps, false signals,
// puts of anything. Its worker address is a good one: UCX believes those, so a node takes them from accepted peers
// alone.
#include <gmock/gmock.h>

#include "base/testing/run_until.h"
#include "transport/testing/raw_ucx.h"
#include "transport/ucx/channel.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

enum : uint8_t { wake = 1, credit = 2, sleeping = 3 };

Bytes signal(uint8_t what, uint64_t value) {
  Bytes bytes;
  Writer(bytes).u8(what).u64(value);
  return bytes;
}

class AHostileUcxPeer : public AttackedNode, public testing::WithParamInterface<Kind> {
 protected:
  void SetUp() override { start(GetParam()); }
  // UCX 1.13 ends the process of a peer whose other side goes while the two still connect. Here that is ourselves.
  void TearDown() override {
    means.reset();
    for (const auto deadline = Deadline::after_ms(50); !deadline.passed();) poll(1);
  }
  RawPeer connect_raw() {
    means.emplace(GetParam());
    RawPeer raw(kind, address);
    (void)raw.send(means->greeting());
    EXPECT_TRUE(
        poll_until([&] { return raw.receive() && node->opened == 1 && raw.received.size() > greeting_head_bytes; }));
    ucx().connect(decode_details(decode_greeting(raw.received).value().details).value());
    settle();
    return raw;
  }
  RawUcx& ucx() { return *means->ucx; }
  void settle() {
    const auto deadline = Deadline::after_ms(5);
    for (int rounds = 0; rounds < 50 || !deadline.passed(); ++rounds) {  // a busy machine makes few in that time
      poll(1);
      ucx().progress();
    }
  }
  void expect_lost(const char* why) {
    EXPECT_TRUE(poll_until([&] {
      ucx().progress();
      return node->lost.has_value();
    })) << why;
    if (node->lost) {
      EXPECT_THAT(node->lost->message, HasSubstr(why));
    }
    forget();
    expect_witness_is_served();
  }
  bool uses_puts() const { return GetParam().choice == Choice::ucx_put; }

  std::optional<Means> means;
};

TEST_P(AHostileUcxPeer, messages_with_a_prefix_that_is_not_its_own_are_ignored) {
  RawPeer raw = connect_raw();
  for (unsigned bit = 0; bit < 48; ++bit) ucx().send_prefixed(am_bytes, 0, frame_bytes(0, 8), uint64_t{1} << bit);
  for (unsigned bit = 0; bit < 48; ++bit) ucx().send_prefixed(am_signal, 0, signal(9, 9), uint64_t{1} << bit);
  settle();
  EXPECT_FALSE(node->lost) << node->lost->message;
  EXPECT_EQ(take_frame(node->in(), 0), Took::nothing);
  expect_witness_is_served();
}

// By Active Messages, and by puts.
class AHostileUcxSender : public AHostileUcxPeer {};
class AHostileUcxPutter : public AHostileUcxPeer {};

// Only with ids that the node uses: for any other one UCX 1.13 reads past the end of its table of handlers, and that is
// one more reason why UCX is for networks where every peer is trusted.
TEST_P(AHostileUcxPeer, messages_that_are_too_short_or_of_another_form_are_ignored) {
  RawPeer raw = connect_raw();
  for (size_t size = 0; size < 8; ++size)
    for (const unsigned id : {am_bytes, am_signal}) ucx().send(id, Bytes(size, std::byte{0xff}));
  for (const unsigned id : {am_bytes, am_signal}) {
    ucx().send(id, Bytes(40), Bytes(8));
    ucx().send(id, Bytes(40), {}, UCP_AM_SEND_FLAG_RNDV);
  }
  settle();
  EXPECT_FALSE(node->lost) << node->lost->message;
  expect_witness_is_served();
}

TEST_P(AHostileUcxPeer, a_gap_in_the_numbers_of_its_messages_is_a_loss) {
  RawPeer raw = connect_raw();
  ucx().send_prefixed(am_signal, 1, signal(wake, 0));
  expect_lost("message 1 came when 0 was next");
}

TEST_P(AHostileUcxPeer, a_number_that_comes_twice_is_a_loss) {
  RawPeer raw = connect_raw();
  for (int i = 0; i < 2; ++i) ucx().send_prefixed(am_signal, 0, signal(wake, 0));
  expect_lost("message 0 came when 1 was next");
}

TEST_P(AHostileUcxPeer, signals_that_are_truncated_or_too_long_or_unknown_are_a_loss) {
  for (size_t size = 0; size < 12; ++size) {
    if (size == 9) continue;
    SCOPED_TRACE(size);
    RawPeer raw = connect_raw();
    ucx().send_prefixed(am_signal, 0, Bytes(size, std::byte{wake}));
    expect_lost("a signal");
  }
  for (const uint8_t what : {0, 4, 255}) {
    RawPeer raw = connect_raw();
    ucx().send_prefixed(am_signal, 0, signal(what, 0));
    expect_lost("has an impossible value");
  }
}

TEST_P(AHostileUcxPeer, credit_for_more_than_was_sent_is_a_loss) {
  for (const uint64_t value : {uint64_t{1}, uint64_t{65536}, ~uint64_t{0}}) {
    RawPeer raw = connect_raw();
    ucx().send_prefixed(am_signal, 0, signal(credit, value));
    expect_lost("has an impossible value");
  }
}

TEST_P(AHostileUcxPeer, one_that_announces_sleep_again_and_again_is_only_woken) {
  RawPeer raw = connect_raw();
  for (uint16_t i = 0; i < 20; ++i) {
    ucx().send_prefixed(am_signal, i, signal(sleeping, 0));
    settle();
  }
  EXPECT_FALSE(node->lost) << node->lost->message;
  expect_witness_is_served();
}

TEST_P(AHostileUcxPeer, credit_that_goes_back_is_a_loss) {
  RawPeer raw = connect_raw();
  ASSERT_TRUE(put_frame(node->out(), 0, 100));
  node->out().flush();
  settle();
  ucx().send_prefixed(am_signal, 0, signal(credit, 8));
  ucx().send_prefixed(am_signal, 1, signal(credit, 8));
  settle();
  EXPECT_FALSE(node->lost) << node->lost->message;
  ucx().send_prefixed(am_signal, 2, signal(credit, 7));
  expect_lost("its signal 2 has an impossible value, 7");
}

TEST_P(AHostileUcxPeer, one_that_sleeps_is_woken_with_the_next_bytes_and_at_once_when_it_has_not_seen_the_last) {
  RawPeer raw = connect_raw();
  const auto send = [&] {
    ASSERT_TRUE(put_frame(node->out(), 0, 100));
    node->out().flush();
    settle();
  };
  ucx().send_prefixed(am_signal, 0, signal(sleeping, 0));
  settle();
  EXPECT_EQ(ucx().signals_of(wake), 0u) << "it has seen everything";
  send();
  EXPECT_EQ(ucx().signals_of(wake), 1u);
  send();
  EXPECT_EQ(ucx().signals_of(wake), 1u) << "it sleeps no longer";
  ucx().send_prefixed(am_signal, 1, signal(sleeping, 0));
  settle();
  EXPECT_EQ(ucx().signals_of(wake), 2u);
  send();
  EXPECT_EQ(ucx().signals_of(wake), 2u) << "it was woken";
}

// With puts alone: nothing else comes without a message that ends the node's sleep.
TEST_P(AHostileUcxPutter, is_told_once_that_the_node_sleeps_until_it_has_woken_it) {
  RawPeer raw = connect_raw();
  for (uint16_t round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) {
      node->sleep(1);
      settle();
    }
    EXPECT_EQ(ucx().signals_of(sleeping), round + 1u);
    ucx().send_prefixed(am_signal, round, signal(wake, 0));
    settle();
  }
  EXPECT_FALSE(node->lost) << node->lost->message;
}

TEST_P(AHostileUcxSender, is_not_told_that_the_node_sleeps) {
  RawPeer raw = connect_raw();
  node->sleep(1);
  settle();
  EXPECT_EQ(ucx().signals_of(sleeping), 0u);
}

TEST_P(AHostileUcxSender, bytes_that_are_truncated_are_the_frames_before_and_nothing_more) {
  RawPeer raw = connect_raw();
  node->when_notified = nullptr;
  Bytes bytes = frame_bytes(0, 8);
  const Bytes second = frame_bytes(1, 100);
  bytes.insert(bytes.end(), second.begin(), second.end() - 1);
  ucx().send_prefixed(am_bytes, 0, bytes);
  ASSERT_TRUE(poll_until([&] {
    ucx().progress();
    return take_frame(node->in(), 0) == Took::frame;
  }));
  settle();
  EXPECT_EQ(take_frame(node->in(), 1), Took::nothing);
  ucx().send_prefixed(am_bytes, 1, ByteView(second).last(1));
  EXPECT_TRUE(poll_until([&] {
    ucx().progress();
    return take_frame(node->in(), 1) == Took::frame;
  }));
}

TEST_P(AHostileUcxSender, more_bytes_than_the_node_has_room_for_are_a_loss) {
  RawPeer raw = connect_raw();
  node->when_notified = nullptr;  // nothing is taken off
  for (uint16_t i = 0; i < 200; ++i) {
    ucx().send_prefixed(am_bytes, i, frame_bytes(i, 7984));
    if (i % 10 == 0) settle();
  }
  uint32_t taken = 0;
  EXPECT_TRUE(poll_until([&] {
    while (take_frame(node->in(), taken) == Took::frame) ++taken;
    node->in().release();
    return node->lost.has_value();
  }));
  EXPECT_GT(taken, 100u) << "what it had room for";
  EXPECT_LT(taken, 200u);
  expect_lost("are its limit");
}

TEST_P(AHostileUcxPutter, bytes_beside_its_puts_are_a_loss) {
  RawPeer raw = connect_raw();
  ucx().send_prefixed(am_bytes, 0, Bytes(10));
  expect_lost("it sent 10 bytes in a message when it uses puts");
}

TEST_P(AHostileUcxPutter, a_false_counter_is_a_loss) {
  const uint64_t window = FabricOptions{}.ring_bytes;
  for (const uint64_t value : {window + 1, uint64_t{1} << 40, ~uint64_t{0}}) {
    SCOPED_TRACE(value);
    RawPeer raw = connect_raw();
    Bytes counter;
    Writer(counter).u64(value);
    ucx().put(counter, 0);
    expect_lost("bytes into memory of");
  }
}

TEST_P(AHostileUcxPeer, more_than_a_closing_record_on_the_socket_is_a_loss) {
  RawPeer raw = connect_raw();
  (void)raw.send(Bytes(9));
  expect_lost("more than a closing record");
}

TEST_P(AHostileUcxPeer, a_false_or_truncated_closing_record_delays_the_node_for_a_second_at_most) {
  RawPeer raw = connect_raw();
  const Bytes word(uses_puts() ? 1 : 8, std::byte{0x7f});
  (void)raw.send(word);
  raw.end_writing();
  const uint64_t before = now_ns();
  expect_lost("it closed its socket without disconnecting first");
  EXPECT_LT(now_ns() - before, 2'000'000'000u * tc::test::slowness());
}

TEST_P(AHostileUcxPeer, one_that_no_ucx_transport_reaches_still_gets_the_reason_of_its_refusal) {
  const bool is_tcp = std::string_view(GetParam().ucx_tls) == "tcp,self";
  means.emplace(Kind{kind.name, kind.choice, is_tcp ? "posix,self" : "tcp,self"});
  RawPeer raw(kind, address);
  (void)raw.send(means->greeting());
  ASSERT_TRUE(poll_until([&] { return node->failed_opens == 1; }));
  node->peer->refuse({TC_ERR_DISCONNECTED, "nothing leads to you"});
  ASSERT_TRUE(poll_until([&] { return !raw.receive(); }));
  const auto answer = decode_greeting(raw.received);
  ASSERT_FALSE(answer) << "it was greeted before";
  EXPECT_EQ(answer.error().message, "nothing leads to you");
  forget();
  expect_witness_is_served();
}

// No hostile one: it may sleep before the node has read its greeting, and its signal travels by another road than that.
TEST_P(AHostileUcxPeer, one_that_sleeps_before_its_greeting_is_read_is_not_lost) {
  const auto listener = listen_at(resolve("127.0.0.1:0", true).value().front());
  const auto connection = node->transport->connect(local_address(*listener).text(), {}).value();
  RawPeer raw(Fd(accept4(listener->get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  ASSERT_TRUE(poll_until([&] { return raw.receive() && raw.received.size() > greeting_head_bytes; }));
  means.emplace(GetParam());
  ucx().connect(decode_details(decode_greeting(raw.received).value().details).value());
  ucx().send_prefixed(am_signal, 0, signal(sleeping, 0));
  settle();
  (void)raw.send(means->greeting());
  ASSERT_TRUE(poll_until([&] { return node->opened == 1; }));
  settle();
  EXPECT_FALSE(node->lost) << node->lost->message;
}

TEST_P(AHostileUcxPeer, another_version_is_refused_where_it_would_not_be_understood) {
  Means other(GetParam());
  auto details = other.ucx->details();
  details.version = "9.99.0";
  const bool is_understood = details.tcp_alone && !uses_puts();
  node->opens = false;
  const unsigned before = refusals();
  RawPeer raw(kind, address);
  (void)raw.send(encode_greeting({std::string(choice_name(kind.choice)), encode_details(details), Bytes(10)}));
  ASSERT_TRUE(poll_until([&] { return refusals() != before || node->accepted == 2; }));
  EXPECT_EQ(node->accepted == 2, is_understood);
  if (is_understood) return;
  EXPECT_THAT(last_reason(), HasSubstr("one side runs UCX 9.99.0"));
  expect_one_goes(raw, before);
}

std::string name(const testing::TestParamInfo<Kind>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Hostile, AHostileUcxPeer, testing::ValuesIn(kinds + 5, kinds + 9), name);
INSTANTIATE_TEST_SUITE_P(Hostile, AHostileUcxSender, testing::Values(kinds[5], kinds[6]), name);
INSTANTIATE_TEST_SUITE_P(Hostile, AHostileUcxPutter, testing::Values(kinds[7], kinds[8]), name);

}  // namespace
}  // namespace tc::transport
