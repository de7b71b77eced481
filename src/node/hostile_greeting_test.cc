// SPDX-License-Identifier: Apache-2.0
//
// A peer whose greeting or disconnect message is wrong, and a target that never greets.
#include "node/testing/hostile.h"

namespace tc::node {
namespace {

using test::Hostile;
using test::RawPeer;
using test::operator+;
using wire::Kind;

TEST_F(Hostile, another_protocol_version_is_told_both_versions) {
  auto hello = RawPeer::hello();
  hello.protocol = wire::protocol_version + 1;
  // A later version may have more fields: the version stands in front of all that could differ.
  peer.connect("n1", wire::encode_hello(hello) + as_bytes("and more"));
  expect_refused(TC_ERR_VERSION, "the peer speaks protocol version 5 when this build speaks version 4");
}

TEST_F(Hostile, another_ifunc_abi_is_told_both_versions) {
  auto hello = RawPeer::hello();
  hello.abi = 99;
  peer.connect("n1", wire::encode_hello(hello));
  expect_refused(TC_ERR_VERSION, "has ifunc ABI 99 when this build has");
}

TEST_F(Hostile, a_hello_with_bytes_behind_it_is_refused) {
  peer.connect("n1", wire::encode_hello(RawPeer::hello()) + as_bytes("x"));
  expect_refused(TC_ERR_MALFORMED, "greeting of a node");
}

TEST_F(Hostile, a_hello_cut_short_anywhere_is_refused) {
  const auto whole = wire::encode_hello(RawPeer::hello());
  for (size_t size = 0; size < whole.size(); ++size) {
    peer.connect("n1", ByteView(whole).first(size));
    expect_refused(TC_ERR_MALFORMED, "greeting of a node");
    leave();
  }
}

TEST_F(Hostile, a_triple_that_makes_no_sense_is_refused) {
  auto hello = RawPeer::hello();
  hello.triple = "-";
  peer.connect("n1", wire::encode_hello(hello));
  expect_refused(TC_ERR_INVALID, "triple");
}

TEST_F(Hostile, a_peer_that_is_refused_runs_nothing) {
  auto hello = RawPeer::hello();
  hello.abi = 99;
  peer.connect("n1", wire::encode_hello(hello));
  EXPECT_FALSE(peer.send(Kind::call_code, wire::flag_call_header, 0, echo_with_code(5, "early")));
  expect_refused(TC_ERR_VERSION, "has ifunc ABI 99");
  EXPECT_EQ(target->stat("code-loads"), 0u);
}

TEST_F(Hostile, words_of_goodbye_cannot_steer_a_terminal) {
  join();
  peer.send(Kind::disconnect, 0, wire::encode_disconnect({TC_ERR_DENIED, "\x1b[2Jgone"}));
  ASSERT_TRUE(run_until([&] { return peer.lost.has_value(); }));
  EXPECT_EQ(target->stat("dropped-links"), 1u);
}

TEST_F(Hostile, a_target_that_never_greets_fails_the_connection_at_its_deadline) {
  RawPeer mute(net.network);
  mute.answers = false;
  mute.listen("mute");
  const auto link = client->connect("mute", Deadline::after_ms(50));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, TC_ERR_TIMEOUT);
}

}  // namespace
}  // namespace tc::node
