// SPDX-License-Identifier: Apache-2.0
//
// Two or more UCX transports in one process, driven by one thread or by one each.
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <set>
#include <thread>

#include "transport/peer_table.h"
#include "transport/socket.h"
#include "transport/test_node.h"
#include "transport/ucx_transport.h"

namespace tc::transport {
namespace {

class Pair : public testing::Test {
 protected:
  void SetUp() override { unsetenv("UCX_TLS"); }
  static bool turn_until(TestNode& a, TestNode& b, const std::function<bool()>& done, uint64_t ms = 10000) {
    return a.until(
        [&] {
          b.turn();
          return done();
        },
        ms);
  }
  static void join(TestNode& a, TestNode& b) {
    a.connect(b.listen());
    ASSERT_TRUE(turn_until(a, b, [&] { return a.open() && b.open(); }));
  }
};

TEST_F(Pair, frames_pass_both_ways_between_two_threads) {
  for (const Way way : {Way::ring, Way::am, Way::put}) {
    TestNode server(way);
    const std::string address = server.listen();
    static constexpr uint32_t frames = 20000;
    const auto run = [](TestNode& node) {
      uint32_t sent = 0, received = 0;
      node.until(
          [&] {
            if (!node.open()) return node.lost.has_value();
            for (int i = 0; i < 50 && sent < frames && put_frame(node.peer->out(), sent, sent % 200); ++i) ++sent;
            for (Took took; (took = take_frame(node.peer->in(), received)) != Took::nothing; ++received)
              if (took == Took::wrong) return true;
            node.peer->in().release();
            return sent == frames && received == frames;
          },
          60000);
      node.turn();
      EXPECT_EQ(sent, frames);
      EXPECT_EQ(received, frames);
      return node.lost.has_value();
    };
    std::thread other([&] { run(server); });
    TestNode client(way);
    client.connect(address);
    run(client);
    other.join();
  }
}

TEST_F(Pair, two_connections_between_the_same_nodes_are_independent) {
  Recorder a_events, b_events;
  auto a = make_ucx_transport({}, a_events).value();
  auto b = make_ucx_transport({}, b_events).value();
  const std::string address = b->listen("127.0.0.1:0").value();
  auto first = a->connect(address).value();
  auto second = a->connect(address).value();
  ASSERT_TRUE(first->send_control(control_frame(1)));
  ASSERT_TRUE(second->send_control(control_frame(2)));
  const auto turn_until = [&](auto done) {
    for (const auto deadline = Deadline::after_ms(10000); !done() && !deadline.passed();) {
      a->progress();
      b->progress();
    }
    return done();
  };
  ASSERT_TRUE(turn_until([&] { return b_events.controls.size() == 2; }));
  ASSERT_EQ(b_events.accepted.size(), 2u);
  first->close();
  first.reset();
  ASSERT_TRUE(turn_until([&] { return b_events.lost.size() == 1; }));
  ASSERT_TRUE(second->send_control(control_frame(3)));
  ASSERT_TRUE(turn_until([&] { return b_events.controls.size() == 3; }));
  EXPECT_EQ(b_events.controls[2], control_frame(3));
  EXPECT_TRUE(a_events.lost.empty());
  EXPECT_EQ(b_events.lost.size(), 1u);
  // And again, while the other one stays.
  auto third = a->connect(address).value();
  ASSERT_TRUE(third->send_control(control_frame(4)));
  ASSERT_TRUE(turn_until([&] { return b_events.controls.size() == 4; }));
  EXPECT_EQ(b_events.lost.size(), 1u);
}

TEST_F(Pair, connecting_again_after_closing_works_many_times) {
  TestNode b(Way::automatic);
  const std::string address = b.listen();
  TestNode a(Way::automatic);
  for (uint32_t round = 0; round < 20; ++round) {
    a.opened = b.opened = false;
    a.lost.reset();
    b.lost.reset();
    a.connect(address);
    ASSERT_TRUE(turn_until(a, b, [&] { return (a.open() && b.open()) || a.lost || b.lost; })) << round;
    ASSERT_FALSE(a.lost) << round << ": " << a.lost->message;
    ASSERT_FALSE(b.lost) << round << ": " << b.lost->message;
    ASSERT_TRUE(put_frame(a.peer->out(), round, 100));
    ASSERT_TRUE(turn_until(a, b, [&] { return take_frame(b.peer->in(), round) == Took::frame; })) << round;
    a.peer->close();
    a.peer.reset();
    a.opened = false;
    ASSERT_TRUE(turn_until(a, b, [&] { return b.lost.has_value(); })) << round;
    EXPECT_EQ(b.lost->message, "the peer closed the connection");
    b.peer.reset();
  }
  EXPECT_EQ(a.losses, 0u);
}

TEST_F(Pair, a_node_connects_to_itself) {
  Recorder events;
  auto node = make_ucx_transport({}, events).value();
  auto self = node->connect(node->listen("127.0.0.1:0").value()).value();
  ASSERT_TRUE(self->send_control(control_frame(1)));
  for (const auto deadline = Deadline::after_ms(10000); events.controls.empty() && !deadline.passed();)
    node->progress();
  ASSERT_EQ(events.accepted.size(), 1u);
  EXPECT_EQ(events.controls.size(), 1u);
}

TEST_F(Pair, connecting_where_nobody_listens_is_lost_with_the_address) {
  TestNode a(Way::automatic);
  a.connect("127.0.0.1:1");
  ASSERT_TRUE(a.until([&] { return a.lost.has_value(); }));
  EXPECT_EQ(a.lost->message, "connecting to 127.0.0.1:1: Connection refused");
}

TEST_F(Pair, an_address_that_is_none_is_refused_at_once) {
  TestNode a(Way::automatic);
  EXPECT_EQ(a.transport->connect("nonsense").error().code, TC_ERR_INVALID);
  EXPECT_EQ(a.transport->listen("127.0.0.1:99999").error().code, TC_ERR_INVALID);
}

TEST_F(Pair, a_stranger_that_speaks_something_else_is_dropped_and_nobody_is_told) {
  TestNode b(Way::automatic);
  Fd stranger = connect_socket(b.listen()).value();
  b.until([&] { return false; }, 50);
  const std::string_view words = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_GT(send(stranger.get(), words.data(), words.size(), MSG_NOSIGNAL), 0);
  char byte;
  EXPECT_TRUE(b.until([&] { return recv(stranger.get(), &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET; }));
  EXPECT_EQ(b.peer, nullptr);
  EXPECT_EQ(b.losses, 0u);
}

TEST_F(Pair, control_frames_arrive_in_order_also_those_sent_before_the_peer_was_there) {
  TestNode a(Way::automatic), b(Way::automatic);
  a.connect(b.listen());
  for (uint32_t i = 0; i < 50; ++i)
    ASSERT_TRUE(a.peer->send_control(wire::make_frame(wire::Kind::bye, 0, i, Bytes(i * 100))));
  ASSERT_TRUE(turn_until(a, b, [&] { return b.controls.size() == 50; }));
  for (uint32_t i = 0; i < 50; ++i)
    EXPECT_EQ(b.controls[i], wire::make_frame(wire::Kind::bye, 0, i, Bytes(i * 100))) << i;
  ASSERT_TRUE(a.peer->send_control(wire::make_frame(wire::Kind::bye, 0, 51, Bytes(65 * 1000))));
  ASSERT_TRUE(turn_until(a, b, [&] { return b.controls.size() == 51; }));
}

TEST_F(Pair, too_many_control_frames_for_a_peer_that_takes_none_are_refused) {
  TestNode a(Way::automatic), b(Way::automatic);
  join(a, b);
  const Bytes frame = wire::make_frame(wire::Kind::bye, 0, 0, Bytes(60 * 1000));
  Status sent;
  for (int i = 0; i < 10000 && sent; ++i) sent = a.peer->send_control(frame);
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, TC_ERR_LIMIT);
  EXPECT_TRUE(turn_until(a, b, [&] { return a.peer->send_control(frame).has_value(); }));
}

TEST_F(Pair, a_side_that_wants_am_gets_it_though_a_ring_was_offered) {
  TestNode a(Way::am), b(Way::automatic);
  join(a, b);
  EXPECT_EQ(a.peer->way(), Way::am);
  ASSERT_TRUE(put_frame(a.peer->out(), 0, 8));
  EXPECT_TRUE(turn_until(a, b, [&] { return take_frame(b.peer->in(), 0) == Took::frame; }));
}

TEST_F(Pair, a_lone_call_is_handed_over_at_once_where_that_is_wanted) {
  TestNode a(Way::am), b(Way::am);
  join(a, b);
  b.takes_calls = b.transport->pulse.at_once = true;
  const auto arrivals = b.transport->pulse.arrivals;
  const auto consumed = b.peer->in().consumed();
  for (uint32_t number = 0; number < 3; ++number) {
    ASSERT_TRUE(put_frame(a.peer->out(), number, 5 + number));
    ASSERT_TRUE(turn_until(a, b, [&] { return b.calls.size() == number + 1; }));
    EXPECT_EQ(b.calls.back(), patterned(number, 5 + number));
  }
  EXPECT_TRUE(b.aligned);
  EXPECT_EQ(b.peer->in().peek(), 0u);
  EXPECT_EQ(b.transport->pulse.arrivals, arrivals + 3);
  EXPECT_EQ(b.peer->in().consumed(), consumed + 3 * 16) << "the sender gets its window back";
  b.transport->pulse.at_once = false;
  ASSERT_TRUE(put_frame(a.peer->out(), 3, 8));
  EXPECT_TRUE(turn_until(a, b, [&] { return take_frame(b.peer->in(), 3) == Took::frame; }));
}

TEST_F(Pair, a_short_look_takes_messages_in_and_leaves_all_else_to_progress) {
  TestNode a(Way::am), b(Way::am);
  const auto finds_nothing = [](TestNode& node) {
    auto looking = Looking::until(Deadline::after_ms(0));
    return node.transport->wait_for_messages(looking) == Seen::over;
  };
  EXPECT_FALSE(finds_nothing(b)) << "nobody is there: nothing can come by UCX";
  a.connect(b.listen());
  a.turn();
  EXPECT_FALSE(finds_nothing(a)) << "it greets";
  ASSERT_TRUE(turn_until(a, b, [&] { return a.open() && b.open(); }));
  const auto looks_until = [&](const std::function<bool()>& done) {
    for (const auto deadline = Deadline::after_ms(10000); !deadline.passed(); a.turn()) {
      if (finds_nothing(b)) continue;
      if (done()) return true;
      b.turn();
      if (done()) return true;
    }
    return false;
  };
  ASSERT_TRUE(turn_until(a, b, [&] { return finds_nothing(b); }));
  ASSERT_TRUE(put_frame(a.peer->out(), 0, 8));
  EXPECT_TRUE(looks_until([&] { return b.peer->in().peek() != 0; }));
  EXPECT_EQ(take_frame(b.peer->in(), 0), Took::frame);
  b.peer->in().release();
  b.takes_calls = b.transport->pulse.at_once = true;
  ASSERT_TRUE(put_frame(a.peer->out(), 1, 8));
  EXPECT_TRUE(looks_until([&] { return b.calls.size() == 1; }));
  a.send_credit();  // a control message, which progress() delivers
  EXPECT_TRUE(looks_until([&] { return b.credits == 1; }));
}

TEST_F(Pair, a_nap_between_messages_ends_soon_enough_to_see_who_comes_by_a_socket) {
  TestNode a(Way::am), b(Way::am), c(Way::am);
  const auto address = b.listen();
  a.connect(address);
  ASSERT_TRUE(turn_until(a, b, [&] { return a.open() && b.open(); }));
  c.connect(address);
  const auto deadline = Deadline::after_ms(20000);
  auto looking = Looking::until(deadline);
  looking.let_nap(deadline.at_ns(), deadline.at_ns());
  auto seen = Seen::something;
  for (int wait = 0; wait < 3 && seen == Seen::something; ++wait) seen = b.transport->wait_for_messages(looking);
  EXPECT_EQ(seen, Seen::too_long);
  EXPECT_TRUE(turn_until(c, b, [&] { return c.open(); }));
}

// A sends; B waits for messages as one who does nothing else, and sleeps between them.
class OverSockets : public Pair {
 protected:
  void SetUp() override {
    setenv("UCX_TLS", "tcp,self", 1);
    a_.emplace(Way::am);
    b_.emplace(Way::am);
    join(*a_, *b_);
    b_->takes_calls = b_->transport->pulse.at_once = true;
  }
  void TearDown() override { unsetenv("UCX_TLS"); }
  // Until a message came, something else is to be seen to, or the time is over.
  Seen wait(uint64_t ms) {
    const auto deadline = Deadline::after_ms(ms);
    auto looking = Looking::until(deadline);
    looking.let_nap(deadline.at_ns(), deadline.at_ns());
    const auto seen = b_->transport->wait_for_messages(looking);
    if (seen == Seen::too_long) b_->transport->sleep(Deadline::after_ms(1));
    if (seen != Seen::over) b_->turn();
    return seen;
  }
  // Has UCX a reason to wake B?
  bool is_called() const {
    pollfd events{static_cast<UcxTransport&>(*b_->transport).worker().event_fd(), POLLIN, 0};
    return ::poll(&events, 1, 0) == 1;
  }
  void receive_one() {
    const auto before = b_->calls.size();
    ASSERT_TRUE(put_frame(a_->peer->out(), number_++, 8));
    for (const auto deadline = Deadline::after_ms(10000); b_->calls.size() == before && !deadline.passed(); wait(1))
      a_->turn();
    ASSERT_EQ(b_->calls.size(), before + 1);
  }

  std::optional<TestNode> a_, b_;
  uint32_t number_ = 0;
};

TEST_F(OverSockets, every_message_ends_a_nap) {
  const auto deadline = Deadline::after_ms(20000);
  std::jthread sender([&] {
    for (uint32_t number = 0; number < 200 && !deadline.passed(); ++number) {
      ::usleep(1500);  // B is asleep
      EXPECT_TRUE(put_frame(a_->peer->out(), number, 8));
      while (b_->taken <= number && !deadline.passed()) a_->turn();
    }
  });
  uint32_t too_late = 0;
  while (b_->calls.size() < 200 && !deadline.passed()) too_late += wait(1000) != Seen::something;
  EXPECT_EQ(b_->calls.size(), 200u);
  EXPECT_LT(too_late, 100u) << "naps that time has ended";
}

TEST_F(OverSockets, a_wake_up_of_ucx_itself_is_taken_back) {
  for (int i = 0; i < 3; ++i) {
    receive_one();
    ASSERT_EQ(ucp_worker_signal(static_cast<UcxTransport&>(*b_->transport).worker().get()), UCS_OK);
    ASSERT_TRUE(is_called());
    for (const auto deadline = Deadline::after_ms(50); !deadline.passed();) wait(5);
    EXPECT_FALSE(is_called()) << "or no nap would last from here on";
  }
}

TEST_F(OverSockets, another_thread_ends_a_nap) {
  receive_one();
  std::jthread other([&] {
    ::usleep(30'000);
    b_->transport->wake();
  });
  auto seen = Seen::something;
  for (int i = 0; i < 3 && seen == Seen::something; ++i) seen = wait(20000);
  EXPECT_EQ(seen, Seen::too_long);
}

TEST_F(Pair, one_who_goes_on_is_told_of_some_calls_only_and_comes_to_progress_nevertheless) {
  static constexpr size_t most = 200;
  TestNode a(Way::am), b(Way::am);
  join(a, b);
  b.takes_calls = b.transport->pulse.at_once = true;
  b.goes_on_until = most;
  const auto deadline = Deadline::after_ms(30000);
  std::jthread sender([&] {
    for (uint32_t number = 0; number < most && !deadline.passed(); ++number) {
      EXPECT_TRUE(put_frame(a.peer->out(), number, 8));
      while (b.taken <= number && !deadline.passed()) a.turn();
    }
  });
  size_t told = 0;
  while (b.calls.size() < most && !deadline.passed()) {
    auto looking = Looking::until(deadline);
    looking.let_nap(deadline.at_ns(), deadline.at_ns());
    if (b.transport->wait_for_messages(looking) == Seen::something) {
      ++told;
      b.turn();
    }
  }
  EXPECT_EQ(b.calls.size(), most);
  EXPECT_GE(told, most / 16);
  EXPECT_LE(told, most / 2);
}

TEST_F(Pair, nobody_goes_on_when_the_call_that_ran_has_connected) {
  TestNode a(Way::am), b(Way::am), c(Way::am);
  join(a, b);
  const auto address = c.listen();
  std::unique_ptr<Connection> to_c;
  b.on_taken = [&] { to_c = b.transport->connect(address).value(); };
  b.takes_calls = b.transport->pulse.at_once = true;
  b.goes_on_until = 2;
  ASSERT_TRUE(put_frame(a.peer->out(), 0, 8));
  const auto deadline = Deadline::after_ms(20000);
  auto seen = Seen::nothing;
  while (b.calls.empty() && !deadline.passed()) {
    a.turn();
    auto looking = Looking::until(deadline);
    looking.let_nap(deadline.at_ns(), deadline.at_ns());
    seen = b.transport->wait_for_messages(looking);
  }
  EXPECT_EQ(b.calls.size(), 1u);
  EXPECT_EQ(seen, Seen::something);
}

TEST_F(Pair, frames_that_leave_alone_arrive_in_order_with_all_others_by_every_way) {
  for (const auto way : {Way::am, Way::ring, Way::put}) {
    TestNode a(way), b(way);
    join(a, b);
    uint32_t arrived = 0;
    const auto all_arrive = [&](uint32_t until) {
      return turn_until(a, b, [&] {
        while (arrived < until && take_frame(b.peer->in(), arrived) == Took::frame) ++arrived;
        return arrived == until;
      });
    };
    for (uint32_t number = 0; number < 600; ++number) {
      const bool alone = number % 7 < 5;
      ASSERT_TRUE(alone ? put_frame_alone(*a.transport, *a.peer, number, 40) : put_frame(a.peer->out(), number, 40))
          << way_name(way) << ' ' << number;
      if (number % 5 < 3) ++a.transport->pulse.turn;
      if (number % 50 == 49) {
        ASSERT_TRUE(all_arrive(number + 1)) << way_name(way) << ' ' << number << ' ' << arrived;
      }
    }
  }
}

TEST_F(Pair, frames_that_go_past_their_stream_use_up_its_window_and_get_it_back) {
  UcxOptions options;
  options.batch_bytes = 1024;
  options.window_bytes = 8192;
  TestNode a(Way::am, options), b(Way::am, options);
  join(a, b);
  const auto fill = [&] {
    uint64_t bytes = 0;
    for (uint32_t number = 0; put_frame_alone(*a.transport, *a.peer, number, 40); bytes += wire::stride(40))
      ++a.transport->pulse.turn;
    return bytes;
  };
  const auto sent = fill();
  EXPECT_LE(sent, 8192u);
  EXPECT_GT(sent, 8192u - wire::stride(40));
  EXPECT_FALSE(a.peer->out().credit(sent + 16)) << "more than was sent";
  EXPECT_TRUE(a.peer->out().credit(wire::stride(40) * 10));
  EXPECT_EQ(fill(), wire::stride(40) * 10);
}

TEST_F(Pair, nothing_goes_past_the_stream_of_a_peer_that_is_gone) {
  TestNode a(Way::am);
  auto b = std::make_unique<TestNode>(Way::am);
  join(a, *b);
  for (uint32_t number = 0; number < 3; ++number, ++a.transport->pulse.turn)
    ASSERT_TRUE(put_frame_alone(*a.transport, *a.peer, number, 40));
  b.reset();
  ASSERT_TRUE(a.until([&] { return a.lost.has_value(); }));
  EXPECT_FALSE(put_frame_alone(*a.transport, *a.peer, 3, 40));
}

TEST_F(Pair, nothing_goes_past_the_stream_behind_a_goodbye) {
  TestNode a(Way::am), b(Way::am);
  join(a, b);
  for (uint32_t number = 0; number < 3; ++number, ++a.transport->pulse.turn)
    ASSERT_TRUE(put_frame_alone(*a.transport, *a.peer, number, 40));
  a.peer->close();
  EXPECT_FALSE(put_frame_alone(*a.transport, *a.peer, 3, 40));
}

// More peers than a block of the table holds.
TEST_F(Pair, a_node_with_many_peers_tells_their_calls_apart_and_answers_each) {
  struct Hub final : Events {
    void on_accept(std::unique_ptr<Connection> connection) override { peers.push_back(std::move(connection)); }
    void on_control(Connection& connection, ByteView frame) override {
      const auto offer = connection.offer(Way::am).value();
      (void)connection.send_control(wire::make_frame(wire::Kind::hello, 0, 0, offer));
      EXPECT_TRUE(connection.open_way(Way::am, frame.subspan(wire::header_bytes)));
    }
    bool on_call(Connection& connection, uint32_t index, const wire::Header& header, std::byte* body) override {
      EXPECT_EQ(connection.index(), index);
      EXPECT_TRUE(std::ranges::equal(patterned(header.number, 40), std::span(body, header.length)));
      return transport->put_alone(index, call_header(header.number, 40), {patterned(header.number, 40)}) ||
             put_frame_alone(*transport, connection, header.number, 40);
    }
    void on_lost(Connection&, const Error&) override {}
    std::unique_ptr<Transport> transport;
    std::vector<std::unique_ptr<Connection>> peers;
  };
  Hub hub;
  hub.transport = make_ucx_transport({}, hub).value();
  hub.transport->pulse.at_once = true;
  const std::string address = hub.transport->listen("127.0.0.1:0").value();
  std::vector<std::unique_ptr<TestNode>> nodes;
  const auto turn = [&] {
    ++hub.transport->pulse.turn;
    hub.transport->progress();
  };
  for (size_t i = 0; i < PeerTable::block_entries + 4; ++i) {
    nodes.push_back(std::make_unique<TestNode>(Way::am));
    nodes.back()->connect(address);
    ASSERT_TRUE(nodes.back()->until([&] { return turn(), nodes.back()->open(); }));
  }
  for (uint32_t round = 0; round < 3; ++round)
    for (uint32_t i = 0; i < nodes.size(); ++i) {
      auto& node = *nodes[i];
      const uint32_t number = i * 10 + round;
      ASSERT_TRUE(put_frame(node.peer->out(), number, 40));
      ASSERT_TRUE(node.until([&] { return turn(), take_frame(node.peer->in(), number) == Took::frame; })) << i;
    }
  std::set<uint32_t> indexes;
  for (const auto& peer : hub.peers) indexes.insert(peer->index());
  EXPECT_EQ(indexes.size(), nodes.size());
  EXPECT_EQ(*indexes.rbegin(), nodes.size() - 1) << "small numbers";
}

TEST_F(Pair, calls_of_any_length_arrive_whole_at_once_or_on_their_stream) {
  TestNode a(Way::am), b(Way::am);
  join(a, b);
  b.takes_calls = b.transport->pulse.at_once = true;
  size_t at_once = 0;
  for (uint32_t length = 980; length < 1040; ++length) {
    ASSERT_TRUE(put_frame(a.peer->out(), length, length));
    ASSERT_TRUE(turn_until(a, b, [&] { return b.calls.size() > at_once || b.peer->in().peek() != 0; }));
    if (b.calls.size() == at_once) {
      ASSERT_EQ(take_frame(b.peer->in(), length), Took::frame);
      continue;
    }
    ++at_once;
    ASSERT_EQ(b.calls.back(), patterned(length, length));
  }
  EXPECT_GT(at_once, 20u);
  EXPECT_LT(at_once, 60u);
}

TEST_F(Pair, a_call_ends_a_sleep_when_it_is_handed_over_inside) {
  TestNode a(Way::am), b(Way::am);
  join(a, b);
  b.takes_calls = b.transport->pulse.at_once = true;
  ASSERT_TRUE(put_frame(a.peer->out(), 0, 8));
  a.turn();
  const auto deadline = Deadline::after_ms(10000);
  b.sleep(10000);
  while (b.calls.empty() && !deadline.passed()) b.sleep(1000);
  EXPECT_EQ(b.calls.size(), 1u);
  EXPECT_FALSE(deadline.passed());
}

TEST_F(Pair, a_call_that_is_not_taken_at_once_waits_on_its_stream_and_none_overtakes_it) {
  TestNode a(Way::am), b(Way::am);
  join(a, b);
  b.transport->pulse.at_once = true;  // but it refuses
  ASSERT_TRUE(put_frame(a.peer->out(), 0, 8));
  ASSERT_TRUE(turn_until(a, b, [&] { return b.peer->in().peek() != 0; }));
  b.takes_calls = true;
  for (uint32_t number = 1; number < 4; ++number) {
    ASSERT_TRUE(put_frame(a.peer->out(), number, 8));
    const auto before = b.transport->pulse.arrivals;
    ASSERT_TRUE(turn_until(a, b, [&] { return b.transport->pulse.arrivals != before; }));
  }
  EXPECT_TRUE(b.calls.empty());
  for (uint32_t number = 0; number < 4; ++number) EXPECT_EQ(take_frame(b.peer->in(), number), Took::frame) << number;
}

TEST_F(Pair, bunches_and_long_calls_and_frames_of_other_kinds_go_on_their_stream) {
  TestNode a(Way::am), b(Way::am);
  join(a, b);
  b.takes_calls = true;
  const auto arrives = [&] {
    b.transport->pulse.at_once = true;
    return turn_until(a, b, [&] { return b.peer->in().peek() != 0; });
  };
  a.transport->pulse.gathering = true;  // so that two frames leave in one message
  ASSERT_TRUE(put_frame(a.peer->out(), 0, 8) && put_frame(a.peer->out(), 1, 8));
  a.transport->pulse.gathering = false;
  ASSERT_TRUE(arrives());
  EXPECT_EQ(take_frame(b.peer->in(), 0), Took::frame);
  EXPECT_EQ(take_frame(b.peer->in(), 1), Took::frame);
  ASSERT_TRUE(put_frame(a.peer->out(), 2, 4000));
  ASSERT_TRUE(arrives());
  EXPECT_EQ(take_frame(b.peer->in(), 2), Took::frame);
  ASSERT_NE(a.peer->out().reserve(8), nullptr);
  a.peer->out().commit(wire::encode(wire::Kind::reply, 0, 3, 8));
  ASSERT_TRUE(arrives());
  EXPECT_EQ(wire::decode(b.peer->in().peek()).kind, wire::Kind::reply);
  EXPECT_TRUE(b.calls.empty());
}

TEST_F(Pair, an_offer_that_lies_is_refused_and_touches_nothing) {
  TestNode a(Way::automatic), b(Way::am);
  a.connect(b.listen());
  ASSERT_TRUE(turn_until(a, b, [&] { return b.open(); }));
  auto c = a.transport->connect("127.0.0.1:1").value();
  EXPECT_EQ(c->open_way(Way::automatic, {}).error().code, TC_ERR_MALFORMED);
  // b's true offer with its address, nonce or size changed: no ring, and no crash.
  TestNode d(Way::ring);
  const std::string address = d.listen();
  Recorder events;
  auto e = make_ucx_transport({}, events).value();
  for (int byte = 8; byte < 40; ++byte) {
    auto connection = e->connect(address).value();
    d.opened = false;
    d.peer.reset();
    const size_t before = events.controls.size();
    for (const auto deadline = Deadline::after_ms(10000); events.controls.size() == before && !deadline.passed();) {
      e->progress();
      d.turn();
    }
    ASSERT_GT(events.controls.size(), before);
    Bytes offer(events.controls.back().begin() + 8, events.controls.back().end());
    ASSERT_LT(static_cast<size_t>(byte), offer.size());
    offer[static_cast<size_t>(byte)] ^= std::byte{0x11};
    const auto opened = connection->open_way(Way::ring, offer);
    EXPECT_FALSE(opened) << byte;
    connection->close();
    connection.reset();
  }
}

TEST_F(Pair, the_owner_may_destroy_connections_from_inside_events) {
  struct Rude final : Events {
    void on_accept(std::unique_ptr<Connection>) override { ++accepted; }  // destroyed at once
    void on_control(Connection&, ByteView) override { mine.reset(); }
    bool on_call(Connection&, uint32_t, const wire::Header&, std::byte*) override { return false; }
    void on_lost(Connection&, const Error&) override {
      mine.reset();
      ++lost;
    }
    std::unique_ptr<Connection> mine;
    int accepted = 0, lost = 0;
  };
  Rude a_events, b_events;
  auto a = make_ucx_transport({}, a_events).value();
  auto b = make_ucx_transport({}, b_events).value();
  const std::string address = b->listen("127.0.0.1:0").value();
  for (int round = 1; round <= 10; ++round) {
    a_events.mine = a->connect(address).value();
    for (const auto deadline = Deadline::after_ms(10000); a_events.lost < round && !deadline.passed();) {
      a->progress();
      b->progress();
    }
    ASSERT_EQ(a_events.lost, round);
    ASSERT_EQ(b_events.accepted, round);
  }
}

TEST_F(Pair, options_that_make_no_sense_are_refused_with_both_values) {
  Recorder events;
  EXPECT_EQ(make_ucx_transport({.ring_bytes = 5000}, events).error().code, TC_ERR_INVALID);
  EXPECT_EQ(make_ucx_transport({.batch_bytes = 16}, events).error().code, TC_ERR_INVALID);
  EXPECT_EQ(make_ucx_transport({.tls = "no_such_transport"}, events).error().code, TC_ERR_UNSUPPORTED);
}

TEST_F(Pair, a_put_is_refused_where_it_is_not_allowed) {
  TestNode a(Way::put), b(Way::automatic);
  a.connect(b.listen());
  ASSERT_TRUE(turn_until(a, b, [&] { return a.refused.has_value(); }));
  EXPECT_EQ(a.refused->code, TC_ERR_UNSUPPORTED);
}

}  // namespace
}  // namespace tc::transport
