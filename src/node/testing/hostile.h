// SPDX-License-Identifier: Apache-2.0
//
// For tests: a node and a peer that sends malformed or untrue frames, or is lost in the middle of one. Each test ends by
// checking that the node still serves its other peers.
//
// Thread: the test's, which drives all of them.
#pragma once

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {

class Hostile : public ::testing::Test {
 protected:
  explicit Hostile(size_t max_message = 64 * 1024) : Hostile([=](Config& c) { c.max_message = max_message; }) {}
  explicit Hostile(const std::function<void(Config&)>& configure)
      : target(net.make(1, configure)), client(net.make(2)) {
    const Background running(*target);
    good_link = connect(*client, "n1");
  }

  bool run_until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] { turn(); });
  }
  void turn() {
    peer.progress();
    target->poll();
    client->poll();
  }
  void turns() {
    for (int i = 0; i < 8; ++i) turn();
  }
  // So that the next ones run as soon as they are here.
  void run_some_calls_of(RawPeer& from) {
    const auto answered = [&](uint64_t token) {
      return run_until([&] { return from.progress(), from.reply_to(token).has_value(); });
    };
    ASSERT_TRUE(from.send(wire::Kind::call_code, wire::flag_call_header, 0, echo_with_code(1, "x")));
    ASSERT_TRUE(answered(1));
    for (uint64_t token = 2; token < 6; ++token) {
      ASSERT_TRUE(from.send(wire::Kind::call, wire::flag_call_header, 0, call_header(token)));
      ASSERT_TRUE(answered(token));
    }
  }

  void join() {
    peer.connect("n1");
    ASSERT_TRUE(run_until([&] { return peer.peer.has_value(); }));
    turns();
  }
  void leave() {
    peer.vanish();
    ASSERT_TRUE(run_until([&] { return links() == 1; }));
    peer.frames.clear();
    peer.peer.reset();
    peer.bye.reset();
    peer.lost.reset();
  }
  uint64_t links() { return target->stat("links").value(); }
  void expect_dropped(const std::string& reason) {
    EXPECT_TRUE(run_until([&] { return peer.lost.has_value(); })) << "expected: " << reason;
    ASSERT_TRUE(peer.bye.has_value()) << "without a word; expected: " << reason;
    EXPECT_THAT(peer.bye->reason, ::testing::HasSubstr(reason));
    EXPECT_NE(peer.bye->status, TC_OK);
  }
  // Before it was let in.
  void expect_refused(tc_status_t status, const std::string& reason) {
    EXPECT_TRUE(run_until([&] { return peer.lost.has_value(); })) << "expected: " << reason;
    EXPECT_FALSE(peer.peer.has_value());
    EXPECT_EQ(peer.lost->code, status);
    EXPECT_THAT(peer.lost->message, ::testing::HasSubstr(reason));
  }
  void expect_still_linked() {
    turns();
    EXPECT_FALSE(peer.lost.has_value()) << peer.lost->message;
    EXPECT_FALSE(peer.bye.has_value()) << peer.bye->reason;
  }
  // Whatever happened: the others are served, and nothing of the peer stays behind.
  void TearDown() override {
    const auto future =
        client->call(*good_link, *message(*client, "echo", "still there"), 5000, Deadline::after_ms(100));
    ASSERT_TRUE(future) << future.error().message;
    EXPECT_TRUE(run_until([&] { return (*future)->ready.load(); }));
    EXPECT_EQ(as_text((*future)->bytes), "still there");
    peer.vanish();
    EXPECT_TRUE(run_until([&] { return links() == others; })) << links();
  }

  Bytes echo_with_code(uint64_t token, std::string_view payload) {
    return call_header(token) + code_section(echo) + as_bytes(payload);
  }

  Net net;
  std::unique_ptr<Node> target, client;
  Link* good_link = nullptr;
  uint64_t others = 1;  // links of the target's that are not the peer's
  RawPeer peer{net.network};
  Bundle echo = load_bundle("echo");
  Bundle refuse = load_bundle("refuse");
};

}  // namespace tc::node::test
