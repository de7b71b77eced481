// SPDX-License-Identifier: Apache-2.0
//
// A link whose peer takes little or reads late, and the pieces of its frames.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "node/link/pieces.h"
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {
namespace {

using ::testing::HasSubstr;
using wire::Kind;
using namespace std::chrono_literals;

// ---- What a link sends to a peer that takes little, or reads late

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

  Net net;
  std::unique_ptr<Node> node = net.make(1);
  RawPeer peer{net.network};
};

TEST_F(LinkSends, code_that_was_too_large_with_one_payload_goes_along_with_the_next) {
  const auto code_bytes = code_section(load_bundle("echo")).size();
  peer.says.max_message = static_cast<uint32_t>(code_bytes + 1000);
  peer.listen("small");
  auto* const link = node->links().find_or_reach("small").value();
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
    // Answers fill all room to the peer. One call at a time: with many that wait the node would read no more of its frames.
    const auto large = call_header(7) + Bytes(30'000);
    uint64_t sent = node->executed();
    ASSERT_TRUE(alone([&] {
      if (node->executed() == sent && peer.send(Kind::call, wire::flag_call_header, 0, large)) ++sent;
      return backlog();
    }));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(alone([&] { return peer.send(Kind::call, 1, as_bytes("x")); }));
    ASSERT_TRUE(alone([&] { return node->stat("failures") == 1 + 3; }));
  }
  void first_call_of(const std::string& ifunc, uint32_t number) {
    const auto body = call_header(number + 1) + code_section(load_bundle(ifunc)) + as_bytes("x");
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
                        call_header(1) + code_section(load_bundle("echo")) + as_bytes("x")));
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
  Net net;
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

// ---- Calls of a peer that is behind with reading the answers are held
//
// Nothing is lost when it reads late, and a peer that never reads is found out.

constexpr size_t memory = 8u << 20;  // message-memory: a peer is behind from a quarter of that on

class HeldCalls : public testing::Test {
 protected:
  std::unique_ptr<Node> make(uint32_t id) {
    return net.make(id, [](Config& config) { config.message_memory = memory; });
  }
  Net net;
};

// Keeps `window` calls of one node to another on their way, until all are answered.
class Flood {
 public:
  Flood(Node& from, Link* to, size_t size, size_t window, size_t calls)
      : node_(from),
        link_(to),
        message_(test::message(from, "echo", std::string(size, 'x'))),
        window_(window),
        left_(calls) {}

  void step() {
    while (!waiting_.empty() && waiting_.front()->ready.load()) {
      const auto& future = *waiting_.front();
      EXPECT_EQ(future.status, TC_OK) << future.message;
      if (future.bytes.size() == message_->size()) ++answered;
      waiting_.pop_front();
    }
    if (left_ == 0 || waiting_.size() == window_) return;
    auto future = node_.call(*link_, *message_, 60'000, Deadline::after_ms(0));
    if (!future) {
      EXPECT_EQ(future.error().code, TC_ERR_BUSY) << future.error().message;
      return;
    }
    waiting_.push_back(std::move(*future));
    --left_;
  }
  bool is_over() const { return waiting_.empty() && left_ == 0; }

  size_t answered = 0;

 private:
  Node& node_;
  Link* link_;
  std::unique_ptr<source::Message> message_;
  const size_t window_;
  size_t left_;
  std::deque<std::shared_ptr<Future>> waiting_;
};

// Their windows alone are more than the memory for messages that wait.
TEST_F(HeldCalls, two_nodes_that_flood_each_other_get_all_their_answers) {
  auto one = make(1), two = make(2);
  Link* to_two = nullptr;
  {
    const Background running(*two);
    to_two = test::connect(*one, "n2");
  }
  Link* to_one = test::connect(*two, "n1");
  constexpr size_t size = 100'000, window = 150, calls = 300;
  Flood by_one(*one, to_two, size, window, calls), by_two(*two, to_one, size, window, calls);
  const auto step = [&] {
    by_one.step(), one->poll(), one->expire();
    by_two.step(), two->poll(), two->expire();
  };
  EXPECT_TRUE(tc::test::run_until([&] { return by_one.is_over() && by_two.is_over(); }, step, 60'000));
  EXPECT_EQ(by_one.answered, calls);
  EXPECT_EQ(by_two.answered, calls);
  EXPECT_TRUE(to_two->is_ready()) << to_two->reason().message;
  EXPECT_EQ(one->buffers().budget().used(), 0u);
  EXPECT_EQ(two->buffers().budget().used(), 0u);
}

class HeldCallsOfAPeer : public HeldCalls {
 protected:
  void SetUp() override {
    peer.connect("n1");
    ASSERT_TRUE(run_until([&] { return peer.peer.has_value(); }));
    ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0,
                          call_header(1) + code_section(load_bundle("echo")) + as_bytes("x")));
    ASSERT_TRUE(run_until([&] { return peer.reply_to(1).has_value(); }));
    node->links().each([&](Link& link) { link_of_peer = &link; });
    link_of_peer->endpoints = 1;  // it stays when it is lost
    peer.frames.clear();
  }
  bool run_until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] { peer.progress(), node->poll(); }, 20'000);
  }
  // The peer reads nothing meanwhile. Sends calls until the node takes no more of them for a while.
  void call_without_reading(size_t most) {
    peer.set_reading(false);
    size_t refused = 0, executed = 0;
    while (calls < most && refused < 2000 && !link_of_peer->is_lost()) {
      const bool sent = peer.send(Kind::call, wire::flag_call_header, 0, call_header(10 + calls) + Bytes(size));
      refused = sent ? 0 : refused + 1;
      // Another thread may run one, and may not have had a CPU yet.
      if (refused % 100 == 99) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (std::exchange(executed, node->stat("executed").value()) != executed) refused = 0;
      calls += sent ? 1 : 0;
      peer.progress();
      node->poll();
    }
    peer.set_reading(true);
  }

  static constexpr size_t size = 30'000;
  size_t calls = 0;
  std::unique_ptr<Node> node = make(1);
  RawPeer peer{net.network};
  Link* link_of_peer = nullptr;
};

TEST_F(HeldCallsOfAPeer, flow_control_stops_a_peer_that_reads_late_and_every_call_is_answered_in_order) {
  {
    const test::StoppedClock
        stopped;  // a peer that takes nothing for a tenth of a second is read on, and this may take longer
    call_without_reading(2 * memory / size);
  }
  EXPECT_LT(calls, 2 * memory / size) << "it was to be stopped";
  EXPECT_GT(calls * size, memory / 2);
  EXPECT_TRUE(link_of_peer->is_ready()) << link_of_peer->reason().message;
  EXPECT_GE(node->stat("throttled").value(), 1u);
  ASSERT_TRUE(run_until([&] { return peer.frames.size() >= calls; }));
  ASSERT_EQ(peer.frames.size(), calls);
  for (size_t i = 0; i < calls; ++i) {
    const auto reply = wire::decode_reply(peer.frames[i].body);
    ASSERT_TRUE(reply);
    EXPECT_EQ(reply->token, 10 + i);
    EXPECT_EQ(reply->status, TC_OK) << reply->message;
    EXPECT_EQ(reply->bytes.size(), size);
  }
  EXPECT_EQ(node->buffers().budget().used(), 0u);
}

TEST_F(HeldCallsOfAPeer, answers_to_the_nodes_own_calls_are_read_meanwhile) {
  const auto own = node->call(*link_of_peer, *test::message(*node, "echo", "?"), 0, Deadline::after_ms(1000)).value();
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::call_code) != nullptr; }));
  const auto token = wire::read_call_header(peer.find(Kind::call_code)->body.data()).token;
  call_without_reading(memory / 2 / size);
  ASSERT_LT(node->stat("executed").value(), calls) << "some were to be held";
  ASSERT_TRUE(peer.send(Kind::reply, 0, wire::encode_reply({.token = token, .bytes = as_bytes("!")})));
  peer.flush();
  EXPECT_TRUE(tc::test::run_until([&] { return own->ready.load(); }, [&] { node->poll(); }));
  EXPECT_EQ(text_of(*own), "!");
  EXPECT_LT(node->stat("executed").value(), calls) << "still";
}

TEST_F(HeldCallsOfAPeer, a_peer_that_never_reads_is_found_out) {
  for (const auto deadline = Deadline::after_ms(20'000); link_of_peer->is_ready() && !deadline.passed();)
    call_without_reading(SIZE_MAX);
  ASSERT_TRUE(link_of_peer->is_lost());
  EXPECT_EQ(link_of_peer->reason().code, TC_ERR_LIMIT);
  EXPECT_THAT(link_of_peer->reason().message, HasSubstr("wait"));
  EXPECT_LT(calls * size, 3 * memory);
}

// So many answers of that size wait for it that it stays behind all the time.
class ASlowReader : public HeldCallsOfAPeer, public testing::WithParamInterface<size_t> {};

TEST_P(ASlowReader, is_not_read_on_as_long_as_it_takes_anything) {
  peer.set_reading(false);
  for (size_t bytes = 0; bytes < memory / 8 * 5; bytes += GetParam())
    link_of_peer->post_reply({.token = 5, .bytes = Bytes(GetParam())});
  const test::StoppedClock stopped;
  call_without_reading(2 * memory / size);
  peer.set_reading(false);
  const auto times_stopped = [&] { return node->stat("throttled").value(); };
  ASSERT_EQ(times_stopped(), 1u);
  const auto pass = [&](std::chrono::milliseconds time) {
    test::let_pass(time);
    for (int i = 0; i < 20; ++i) peer.flush(), node->poll();
  };
  for (int i = 0; i < 5; ++i) {
    peer.read(4);
    pass(60ms);
  }
  EXPECT_EQ(times_stopped(), 1u);
  ASSERT_TRUE(link_of_peer->channel().is_behind());
  pass(110ms);
  EXPECT_EQ(times_stopped(), 2u) << "some more was to be read of it";
}

INSTANTIATE_TEST_SUITE_P(, ASlowReader, testing::Values(30'000, 900'000),
                         [](const auto& test) { return test.param > 64 * 1024 ? "by_pieces" : "by_whole_answers"; });

TEST_F(HeldCallsOfAPeer, what_a_peer_sent_before_it_left_is_run) {
  call_without_reading(memory / 2 / size);
  ASSERT_LT(node->stat("executed").value(), calls) << "some were to be held";
  peer.vanish();
  // The last of them may end on another thread after the link.
  EXPECT_TRUE(tc::test::run_until(
      [&] { return link_of_peer->is_lost() && node->stat("executed").value() == calls + 1; }, [&] { node->poll(); }));
}

TEST_F(HeldCallsOfAPeer, no_call_overtakes_one_that_waits_for_code) {
  unsigned char text[16] = {};
  node->expose("text", text, sizeof text);
  const auto append = load_bundle("append"), other = renamed(append, "other");
  ASSERT_TRUE(peer.send(Kind::call_code, 0, 1, code_section(append) + as_bytes("a")));
  ASSERT_TRUE(run_until([&] { return text[0] == 1; }));
  ASSERT_TRUE(peer.send(Kind::call, 0, 2, as_bytes("b")));  // of code that the node was never sent
  ASSERT_TRUE(peer.send(Kind::call, 0, 1, as_bytes("c")));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::code, 0, 2, code_section(other)));
  ASSERT_TRUE(run_until([&] { return text[0] == 3; }));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(text) + 1, 3), "abc");
}

// ---- Frames that lie in several places
//
// Every stretch of them, across every boundary, as one copy and as pieces.

constexpr std::byte untouched{0xee};

// Parts of these sizes, whose bytes are 0, 1, 2 and so on across all of them.
struct Parts {
  explicit Parts(const std::vector<size_t>& sizes) {
    for (const auto size : sizes) total += size;
    for (size_t i = 0; i < total; ++i) bytes.push_back(static_cast<std::byte>(i));
    // Each in memory of its own, so that a sanitizer notices who reads past its end.
    size_t at = 0;
    for (const auto size : sizes) {
      const auto from = bytes.begin() + static_cast<ptrdiff_t>(at);
      memory.emplace_back(from, from + static_cast<ptrdiff_t>(size));
      at += size;
    }
    for (const auto& part : memory) views.emplace_back(part);
  }
  Bytes stretch(size_t from, size_t length) const {
    return {bytes.begin() + static_cast<ptrdiff_t>(from), bytes.begin() + static_cast<ptrdiff_t>(from + length)};
  }
  size_t total = 0;
  Bytes bytes;
  std::vector<Bytes> memory;
  std::vector<ByteView> views;
};

const std::vector<std::vector<size_t>> shapes{
    {}, {0}, {5}, {3, 4}, {0, 3, 4}, {3, 4, 0}, {3, 0, 0, 4}, {1, 1, 1, 1}, {8, 2, 0, 7, 1, 5}};

TEST(Pieces, a_stretch_is_copied_whole_wherever_it_begins_and_ends) {
  for (const auto& shape : shapes) {
    const Parts parts(shape);
    EXPECT_EQ(size_of(parts.views), parts.total);
    for (size_t from = 0; from <= parts.total; ++from)
      for (size_t length = 0; from + length <= parts.total; ++length) {
        SCOPED_TRACE(testing::Message() << length << " bytes from " << from << " of " << testing::PrintToString(shape));
        Bytes to(length + 1, untouched);
        gather(to.data(), parts.views, from, length);
        EXPECT_EQ(to.back(), untouched);
        to.pop_back();
        EXPECT_EQ(to, parts.stretch(from, length));
      }
  }
}

// Takes as many frames as it has room for.
class Sink : public transport::OutStream {
 public:
  Sink(size_t piece_length, size_t room) noexcept : room_(room) { piece_length_ = piece_length; }

  size_t put_gathered(std::span<const transport::GatheredFrame> frames) noexcept override {
    size_t taken = 0;
    for (; taken < frames.size() && room_ > 0; ++taken, --room_) {
      const auto header = wire::decode(frames[taken].header);
      EXPECT_EQ(header.kind, wire::Kind::fragment);
      Bytes body;
      for (const auto part : frames[taken].body) {
        EXPECT_FALSE(part.empty());
        body.insert(body.end(), part.begin(), part.end());
      }
      EXPECT_EQ(header.length, body.size());
      pieces.push_back(std::move(body));
      numbers.push_back(header.number);
    }
    return taken;
  }
  void flush() noexcept override {}

  std::vector<Bytes> pieces;
  std::vector<uint32_t> numbers;

 private:
  std::byte* make_room(size_t) noexcept override { return nullptr; }
  void slow_commit() noexcept override {}
  size_t room_;
};

TEST(Pieces, a_frame_is_written_in_pieces_as_far_as_there_is_room_and_the_last_one_says_so) {
  for (const auto& shape : shapes) {
    const Parts parts(shape);
    for (size_t length = 1; length <= parts.total + 1; ++length)
      for (size_t from = 0; from <= parts.total; ++from)
        for (size_t room = 0; room <= parts.total + 1; ++room) {
          SCOPED_TRACE(testing::Message() << "pieces of " << length << " from " << from << " of "
                                          << testing::PrintToString(shape) << ", room for " << room);
          Sink out(length, room);
          const size_t to = write_pieces(out, parts.views, from);
          ASSERT_EQ(to, std::min(from + room * length, parts.total));
          Bytes written;
          for (size_t i = 0; i < out.pieces.size(); ++i) {
            written.insert(written.end(), out.pieces[i].begin(), out.pieces[i].end());
            EXPECT_EQ(out.numbers[i] == last_piece, from + written.size() == parts.total);
            if (out.numbers[i] != last_piece) {
              EXPECT_EQ(out.pieces[i].size(), length);
            }
          }
          ASSERT_EQ(written, parts.stretch(from, to - from));
        }
  }
}

}  // namespace
}  // namespace tc::node::test
