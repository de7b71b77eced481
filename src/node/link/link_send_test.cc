// SPDX-License-Identifier: Apache-2.0
//
// What a link sends to a peer that takes little, or reads late.
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using test::call_header;
using test::RawPeer;
using test::operator+;
using testing::HasSubstr;
using wire::Kind;

class LinkSends : public testing::Test {
 protected:
  bool run_until(const std::function<bool()>& done) {
    return alone([&] { return peer.progress(), done(); });
  }
  // The peer reads nothing meanwhile.
  bool alone(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] {
      peer.flush();
      node->poll();
    });
  }
  Link* link_of_peer() {
    Link* found = nullptr;
    node->links().each([&](Link& link) { found = &link; });
    return found;
  }
  void connect_to(const std::string& address) {
    peer.says.max_message = 8u << 20;
    peer.connect(address);
    ASSERT_TRUE(run_until([&] { return peer.peer.has_value(); }));
  }
  // The peer takes nothing while that is sent, so that only its beginning leaves.
  Status send_in_part(size_t size) {
    const auto large = test::message(*node, "echo", std::string(size, 'x'));
    return node->send(*link_of_peer(), *large, false, Deadline::after_ms(30));
  }
  // No other frame is between the pieces of one; the bytes of them all.
  size_t bytes_of_pieces() {
    size_t bytes = 0;
    bool is_whole = true;
    for (const auto& [header, body] : peer.frames) {
      if (header.kind == Kind::fragment) {
        bytes += body.size();
        is_whole = header.number == last_piece;
      } else {
        EXPECT_TRUE(is_whole) << "a frame of kind " << static_cast<int>(header.kind) << " behind " << bytes << " bytes";
      }
    }
    return bytes;
  }
  bool backlog() {
    bool any = false;
    node->links().each([&](Link& link) { any = any || link.channel().has_backlog(); });
    return any;
  }

  test::Net net;
  std::unique_ptr<Node> node = net.make(1);
  RawPeer peer{net.network};
};

TEST_F(LinkSends, code_that_was_too_large_with_one_payload_goes_along_with_the_next) {
  const auto code_bytes = test::code_section(test::load_bundle("echo")).size();
  peer.says.max_message = static_cast<uint32_t>(code_bytes + 1000);
  peer.listen("small");
  auto* const link = node->links().at("small").value();
  ASSERT_TRUE(run_until([&] { return link->state() == Link::State::ready; }));
  const auto call = [&](size_t payload) {
    return node->call(*link, *test::message(*node, "echo", std::string(payload, 'x')), 5000, Deadline::after_ms(0));
  };
  const auto refused = call(2000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_TOO_LARGE);
  ASSERT_TRUE(call(10));
  ASSERT_TRUE(run_until([&] { return !peer.frames.empty(); }));
  EXPECT_EQ(peer.frames[0].header.kind, Kind::call_code) << "the peer was never sent that code";
}

// The first message of some code waited for room. What was sent meanwhile, by an ifunc or by another thread, went by the
// number of that code, and arrived before it. When the sender left then, it was lost.
TEST_F(LinkSends, no_message_passes_the_code_that_it_needs) {
  connect_to("n1");
  auto* const link = link_of_peer();
  const auto filling = test::message(*node, "refuse", std::string(1000, 'x'));
  while (node->send(*link, *filling, false, Deadline::after_ms(0))) continue;
  const auto first = test::message(*node, "echo", "first");
  const auto second = test::message(*node, "echo", "second");
  bool sent_second = false;
  node->set_pause([&](Deadline) {
    if (std::exchange(sent_second, true)) return;
    peer.progress();  // there is room now
    ASSERT_TRUE(node->send(*link, *second, false, Deadline::after_ms(0)));
  });
  ASSERT_TRUE(node->send(*link, *first, false, Deadline::after_ms(10'000)));
  node->set_pause({});
  ASSERT_TRUE(sent_second) << "the first did not wait";
  ASSERT_TRUE(node->send(*link, *first, false, Deadline::after_ms(0)));
  const auto ends_with = [](const RawPeer::Frame& frame, std::string_view words) {
    return as_text(frame.body).ends_with(words);
  };
  ASSERT_TRUE(run_until(
      [&] { return ends_with(peer.frames.back(), "first") && peer.frames.back().header.kind == Kind::call; }));
  const auto& arrived =
      *std::ranges::find_if(peer.frames, [&](const auto& frame) { return ends_with(frame, "second"); });
  EXPECT_EQ(arrived.header.kind, Kind::call_code);
  EXPECT_EQ(peer.frames.back().header.number, arrived.header.number);
}

// Its peer calls ifuncs that fail, and reads nothing of what the node has to tell.
class LinkReports : public LinkSends {
 protected:
  void SetUp() override {
    peer.connect("n1");
    ASSERT_TRUE(run_until([&] { return peer.peer.has_value(); }));
    first_call_of("echo", 0);
    first_call_of("refuse", 1);
    // Answers fill all room to the peer.
    const auto large = call_header(7) + Bytes(30'000);
    ASSERT_TRUE(alone([&] {
      (void)peer.send(Kind::call, wire::flag_call_header, 0, large);
      return backlog();
    }));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(alone([&] { return peer.send(Kind::call, 1, as_bytes("x")); }));
    ASSERT_TRUE(alone([&] { return node->stat("failures") == 1 + 3; }));
  }
  void first_call_of(const std::string& ifunc, uint32_t number) {
    const auto body = call_header(number + 1) + test::code_section(test::load_bundle(ifunc)) + as_bytes("x");
    ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, number, body));
    ASSERT_TRUE(run_until([&] { return peer.reply_to(number + 1).has_value(); }));
  }
  // Which of the frames that came it is that says so; their number when none does.
  size_t place_of_report(const std::string& words) const {
    return static_cast<size_t>(std::ranges::find_if(peer.frames,
                                                    [&](const auto& frame) {
                                                      if (frame.header.kind != Kind::reply) return false;
                                                      const auto reply = wire::decode_reply(frame.body);
                                                      return reply && reply->token == 0 &&
                                                             reply->message.contains(words);
                                                    }) -
                               peer.frames.begin());
  }
  bool has_report(const std::string& words) const { return place_of_report(words) != peer.frames.size(); }
};

TEST_F(LinkReports, failures_of_calls_without_an_answer_are_counted_for_a_peer_that_reads_late) {
  EXPECT_TRUE(run_until([&] { return has_report("3 more calls failed"); })) << node->stat("executed").value();
}

TEST_F(LinkReports, failures_are_told_before_a_barrier_is_answered) {
  const auto waits = link_of_peer()->channel().backlog_bytes();
  ASSERT_TRUE(alone([&] { return peer.send(Kind::barrier, wire::barrier_ask, wire::encode_barrier(1)); }));
  ASSERT_TRUE(alone([&] { return link_of_peer()->channel().backlog_bytes() > waits; }));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::barrier) != nullptr; }));
  const auto answer = static_cast<size_t>(peer.find(Kind::barrier) - peer.frames.data());
  EXPECT_LT(place_of_report("3 more calls failed"), answer) << "a flush would have said that all was well";
}

TEST_F(LinkSends, answers_that_are_given_while_a_large_message_waits_for_room_leave_behind_it) {
  connect_to("n1");
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0,
                        call_header(1) + test::code_section(test::load_bundle("echo")) + as_bytes("x")));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(1).has_value(); }));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 0, call_header(2) + Bytes(20'000)));
  peer.flush();
  constexpr size_t size = 4u << 20;
  const auto sent = send_in_part(size);
  ASSERT_TRUE(sent) << sent.error().message;
  EXPECT_EQ(node->stat("executed"), 2u) << "the call was to run meanwhile";
  EXPECT_TRUE(run_until([&] { return peer.reply_to(2).has_value(); }));
  EXPECT_GT(bytes_of_pieces(), size);
  EXPECT_TRUE(link_of_peer()->is_ready());
}

// A call without a payload passed a large message whose rest waited for room: it arrived without the code that the large one
// brought along, and when the sender left then, neither was run.
TEST_F(LinkSends, not_even_an_empty_frame_passes_what_waits) {
  connect_to("n1");
  auto& channel = link_of_peer()->channel();
  EXPECT_NE(channel.reserve(0), nullptr);
  channel.set_calls_wait(true);
  EXPECT_EQ(channel.reserve(0), nullptr);
  EXPECT_FALSE(channel.may_leave(0));
  channel.set_calls_wait(false);
  EXPECT_NE(channel.reserve(0), nullptr);
}

TEST_F(LinkSends, nothing_in_the_middle_of_a_message_even_when_it_disconnects) {
  connect_to("n1");
  ASSERT_TRUE(send_in_part(4u << 20));
  peer.progress();  // there is room now
  ASSERT_TRUE(peer.send(Kind::code, 0, 3, as_bytes("nobody asked")));
  peer.flush();
  node->poll();
  EXPECT_TRUE(run_until([&] { return peer.lost.has_value(); }));
  EXPECT_GT(bytes_of_pieces(), 0u);
  EXPECT_FALSE(peer.bye.has_value()) << peer.bye->reason;
}

TEST_F(LinkSends, a_message_whose_rest_cannot_be_kept_ends_the_link_and_its_sender_is_told) {
  node = net.make(3, [](Config& config) { config.message_memory = 1u << 20; });
  connect_to("n3");
  link_of_peer()->endpoints = 1;  // it stays when it is lost
  const auto sent = send_in_part(4u << 20);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, TC_ERR_LIMIT) << sent.error().message;
  EXPECT_THAT(sent.error().message, HasSubstr("the rest cannot be kept"));
  EXPECT_TRUE(link_of_peer()->is_lost());
  EXPECT_EQ(link_of_peer()->reason().message, sent.error().message);
  EXPECT_TRUE(run_until([&] { return peer.lost.has_value(); }));
  EXPECT_GT(bytes_of_pieces(), 0u);
}

// Only its greeting says what a peer takes.
TEST(EarlyReplies, that_are_too_large_for_their_reader_fail_alone) {
  test::Net net;
  const auto one = net.make(1);
  const auto two = net.make(2, [](Config& config) { config.max_message = 1000; });
  auto* const link = one->links().reach("n2").value();
  ASSERT_FALSE(link->is_ready());
  const Bytes large(10'000), small(1000);
  link->post_reply({.token = 1, .bytes = large});
  link->post_reply({.token = 2, .bytes = small});
  EXPECT_TRUE(tc::test::run_until([&] { return two->stat("late-answers") == 2u || link->is_lost(); },
                                  [&] { one->poll(), two->poll(); }));
  EXPECT_TRUE(link->is_ready()) << link->reason().message;
  EXPECT_EQ(one->buffers().budget().used(), 0u);
}

}  // namespace
}  // namespace tc::node
