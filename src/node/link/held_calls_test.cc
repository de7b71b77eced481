// SPDX-License-Identifier: Apache-2.0
//
// Calls of a peer that is behind with reading the answers are held: nothing is lost when it reads late, and a peer that never
// reads is found out.
#include <deque>

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using test::call_header;
using test::RawPeer;
using test::operator+;
using testing::HasSubstr;
using wire::Kind;

constexpr size_t memory = 8u << 20;  // message-memory: a peer is behind from a quarter of that on

class HeldCalls : public testing::Test {
 protected:
  std::unique_ptr<Node> make(uint32_t id) {
    return net.make(id, [](Config& config) { config.message_memory = memory; });
  }
  test::Net net;
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
    const test::Background running(*two);
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
                          call_header(1) + test::code_section(test::load_bundle("echo")) + as_bytes("x")));
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
    size_t refused = 0;
    while (calls < most && refused < 2000 && !link_of_peer->is_lost()) {
      const bool sent = peer.send(Kind::call, wire::flag_call_header, 0, call_header(10 + calls) + Bytes(size));
      refused = sent ? 0 : refused + 1;
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
  call_without_reading(2 * memory / size);
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
  EXPECT_EQ(test::text_of(*own), "!");
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

TEST_F(HeldCallsOfAPeer, what_a_peer_sent_before_it_left_is_run) {
  call_without_reading(memory / 2 / size);
  ASSERT_LT(node->stat("executed").value(), calls) << "some were to be held";
  peer.vanish();
  EXPECT_TRUE(tc::test::run_until([&] { return link_of_peer->is_lost(); }, [&] { node->poll(); }));
  EXPECT_EQ(node->stat("executed").value(), calls + 1);
}

TEST_F(HeldCallsOfAPeer, no_call_overtakes_one_that_waits_for_code) {
  unsigned char text[16] = {};
  node->expose("text", text, sizeof text);
  const auto append = test::load_bundle("append"), other = test::renamed(append, "other");
  ASSERT_TRUE(peer.send(Kind::call_code, 0, 1, test::code_section(append) + as_bytes("a")));
  ASSERT_TRUE(run_until([&] { return text[0] == 1; }));
  ASSERT_TRUE(peer.send(Kind::call, 0, 2, as_bytes("b")));  // of code that the node was never sent
  ASSERT_TRUE(peer.send(Kind::call, 0, 1, as_bytes("c")));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::code, 0, 2, test::code_section(other)));
  ASSERT_TRUE(run_until([&] { return text[0] == 3; }));
  EXPECT_EQ(std::string(reinterpret_cast<char*>(text) + 1, 3), "abc");
}

}  // namespace
}  // namespace tc::node
