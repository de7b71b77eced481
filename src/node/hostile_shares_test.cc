// SPDX-License-Identifier: Apache-2.0
//
// Peers that take more than their share of what all peers of a node have together: links, and memory for messages.
#include "node/link/pieces.h"
#include "node/testing/hostile.h"
#include "node/testing/keyring_kit.h"

namespace tc::node::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using wire::Kind;

constexpr size_t mib = size_t{1} << 20;

// The first bytes of a call of that size.
Bytes beginning_of_call(uint64_t token, size_t size, size_t sent) {
  const auto header = call_header(token);
  Bytes bytes(sent);
  const auto word =
      wire::encode(Kind::call, wire::flag_call_header, 0, static_cast<uint32_t>(size - wire::header_bytes));
  std::memcpy(bytes.data(), &word, sizeof word);
  std::ranges::copy(header, bytes.begin() + wire::header_bytes);
  return bytes;
}

// ---- Large messages whose end never comes

class Unfinished : public Hostile {
 protected:
  static constexpr size_t memory = 64 * mib, largest = 8 * mib;
  Unfinished()
      : Hostile([](Config& config) {
          config.max_message = largest;
          config.message_memory = memory;
        }) {}

  // Sends the first piece of a call.
  void begin(RawPeer& from, size_t size = largest, uint64_t token = 77) {
    ASSERT_TRUE(from.send(Kind::fragment, more_pieces, beginning_of_call(token, size, 1024)));
  }
  // The node looks after them once a second.
  void pass(std::chrono::seconds time) {
    for (auto left = time; left > 0s; left -= 1s) {
      let_pass(1s);
      auto deadline = Deadline::never();
      (void)target->arm(deadline);
      turn();
    }
  }
  size_t used() { return target->buffers().budget().used(); }
};

TEST_F(Unfinished, first_pieces_take_what_has_come_and_not_what_they_announce) {
  constexpr size_t peers = 13;
  std::vector<std::unique_ptr<RawPeer>> raws;
  for (size_t i = 0; i < peers; ++i) {
    auto& raw = *raws.emplace_back(std::make_unique<RawPeer>(net.network));
    raw.connect("n1");
    ASSERT_TRUE(run_until([&] { return raw.progress(), raw.peer.has_value(); }));
    begin(raw);
    ASSERT_TRUE(run_until([&] { return raw.progress(), used() != 0; }));
  }
  ASSERT_TRUE(run_until([&] { return used() == peers * 2 * mib; })) << used() << " for the first page of each";
  const auto large =
      client->call(*good_link, *message(*client, "echo", std::string(4 * mib, 'x')), 60'000, Deadline::after_ms(1000));
  ASSERT_TRUE(large) << large.error().message;
  EXPECT_TRUE(run_until([&] { return (*large)->ready.load(); }));
  EXPECT_EQ((*large)->status, TC_OK) << (*large)->message;
  raws.clear();
  EXPECT_TRUE(run_until([&] { return links() == 1; }));
  EXPECT_EQ(used(), 0u);
}

TEST_F(Unfinished, a_message_of_which_nothing_more_comes_fails_by_name_and_gives_its_memory_back) {
  join();
  run_some_calls_of(peer);
  begin(peer);
  turns();
  EXPECT_GT(used(), 0u);
  pass(27s);  // the first look counts for up to a second
  EXPECT_FALSE(peer.reply_to(77));
  pass(5s);
  ASSERT_TRUE(run_until([&] { return peer.reply_to(77).has_value(); }));
  EXPECT_EQ(peer.reply_to(77)->status, TC_ERR_TIMEOUT);
  EXPECT_THAT(
      peer.reply_to(77)->message,
      HasSubstr("8388600 bytes came from node 7 (raw): 1024 of them have come, and then less than 524288 in 30 s"));
  EXPECT_EQ(used(), 0u);
  expect_still_linked();
}

TEST_F(Unfinished, the_rest_of_a_message_that_was_given_up_is_dropped_and_the_link_goes_on) {
  join();
  run_some_calls_of(peer);
  constexpr size_t size = 20'000;
  begin(peer, size);
  pass(35s);
  ASSERT_TRUE(run_until([&] { return peer.reply_to(77).has_value(); }));
  peer.frames.clear();
  const auto ran = target->executed();
  ASSERT_TRUE(peer.send(Kind::fragment, more_pieces, Bytes(10'000)));
  ASSERT_TRUE(peer.send(Kind::fragment, last_piece, Bytes(size - 11'024)));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 0, call_header(78)));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(78).has_value(); }));
  EXPECT_EQ(peer.reply_to(78)->status, TC_OK);
  EXPECT_FALSE(peer.reply_to(77)) << "it is told once";
  EXPECT_EQ(target->executed(), ran + 1);
  EXPECT_EQ(used(), 0u);
}

TEST_F(Unfinished, a_message_that_comes_slowly_and_steadily_is_run) {
  join();
  run_some_calls_of(peer);
  constexpr size_t piece = 16 * 1024, pieces_in_10_s = 12, size = 60 * piece;
  const auto whole = beginning_of_call(77, size, size);
  const auto ran = target->executed();
  for (size_t at = 0; at < size; at += piece) {
    const bool is_last = at + piece == size;
    ASSERT_TRUE(peer.send(Kind::fragment, is_last ? last_piece : more_pieces, ByteView(whole).subspan(at, piece)));
    turns();
    if (at / piece % pieces_in_10_s == pieces_in_10_s - 1 && !is_last) pass(10s);
  }
  EXPECT_TRUE(run_until([&] { return target->executed() == ran + 1; }));
}

TEST_F(Unfinished, a_little_now_and_then_does_not_hold_the_memory) {
  join();
  run_some_calls_of(peer);
  begin(peer);
  for (int i = 0; i < 8; ++i) {
    pass(5s);
    ASSERT_TRUE(peer.send(Kind::fragment, more_pieces, Bytes(1024)));
  }
  ASSERT_TRUE(run_until([&] { return peer.reply_to(77).has_value(); }));
  EXPECT_EQ(peer.reply_to(77)->status, TC_ERR_TIMEOUT);
  EXPECT_EQ(used(), 0u);
}

// What a node does not read for reasons of its own is not the peer's fault.
TEST_F(Unfinished, time_in_which_the_node_does_not_poll_is_not_the_peers) {
  join();
  run_some_calls_of(peer);
  begin(peer, 20'000);
  turns();
  let_pass(3600s);
  pass(5s);
  EXPECT_FALSE(peer.reply_to(77)) << peer.reply_to(77)->message;
  EXPECT_GT(used(), 0u);
}

TEST_F(Unfinished, an_answer_of_which_nothing_more_comes_fails_the_call_that_waits_for_it) {
  RawPeer server(net.network);
  server.listen("server");
  Link* to_server = nullptr;
  ASSERT_TRUE(run_until([&] {
    server.progress();
    if (to_server == nullptr) to_server = client->links().reach("server").value();
    return to_server->is_ready();
  }));
  const auto future =
      client->call(*to_server, *message(*client, "echo", "x"), 600'000, Deadline::after_ms(1000)).value();
  ASSERT_TRUE(run_until([&] { return server.progress(), server.find(Kind::call_code) != nullptr; }));
  const auto call = *server.find(Kind::call_code);
  uint64_t token = 0;
  std::memcpy(&token, call.body.data(), sizeof token);
  const auto head = wire::encode_reply({.token = token});
  const auto word = wire::encode(Kind::reply, 0, 0, static_cast<uint32_t>(head.size() + 4 * mib));
  Bytes first(sizeof word);
  std::memcpy(first.data(), &word, sizeof word);
  ASSERT_TRUE(server.send(Kind::fragment, more_pieces, first + head + Bytes(1000)));
  for (int i = 0; i < 35; ++i) {
    let_pass(1s);
    auto deadline = Deadline::never();
    (void)client->arm(deadline);
    turn();
    server.progress();
  }
  EXPECT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_TIMEOUT);
  EXPECT_THAT(future->message, HasSubstr("of them have come, and then less than"));
}

// ---- Keys, by however many links they come

class Shares : public WithKeyring {
 protected:
  static constexpr size_t memory = 32 * mib, largest = 8 * mib;

  // Another link of that person's.
  RawPeer& join(const Person& person) {
    const auto address = "raw:" + std::to_string(raws.size() + 1);
    net.network.make_foreign(address, person.public_key());
    auto& raw = *raws.emplace_back(std::make_unique<RawPeer>(net.network));
    raw.listen(address);
    raw.connect("n1");
    EXPECT_TRUE(run_until([&] { return raw.peer.has_value() || raw.lost.has_value(); }));
    return raw;
  }
  bool run_until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] {
      for (auto& raw : raws) raw->progress();
    });
  }
  void start_small(const std::string& lines) {
    start(lines, [](Config& config) {
      config.max_message = largest;
      config.message_memory = memory;
    });
  }
  std::vector<std::unique_ptr<RawPeer>> raws;
};

TEST_F(Shares, a_key_that_may_run_nothing_has_16_links_and_others_connect) {
  start(ana.line("run=none") + bob.line());
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(join(ana).peer) << i;
  const auto& refused = join(ana);
  ASSERT_TRUE(refused.lost);
  EXPECT_EQ(refused.lost->code, TC_ERR_LIMIT);
  EXPECT_THAT(refused.lost->message,
              HasSubstr("ana (keyring, line 1) has 16 links to this node, and may have 16 at a time (run=none)"));
  EXPECT_TRUE(wait_for_log("is refused: ana (keyring, line 1) has 16 links"));
  EXPECT_TRUE(join(bob).peer);
  EXPECT_EQ(call(*own_peer(3), echo)->status, TC_OK);
  EXPECT_EQ(stat("refused-peers"), 1u);
}

TEST_F(Shares, a_key_that_may_run_code_has_as_many_links_as_the_node_says) {
  start(ana.line("run=signed") + bob.line("run=any"), [](Config& config) { config.key_links = 20; });
  for (const auto* person : {&ana, &bob}) {
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(join(*person).peer) << i;
    const auto& refused = join(*person);
    ASSERT_TRUE(refused.lost);
    EXPECT_THAT(refused.lost->message, HasSubstr("has 20 links to this node, and may have 20 at a time (key-links)"));
  }
}

TEST_F(Shares, processes_of_our_own_user_have_no_such_limit) {
  start(ana.line(), [](Config& config) { config.key_links = 1; });
  std::vector<std::unique_ptr<Node>> nodes;
  for (uint32_t id = 10; id < 13; ++id)
    EXPECT_TRUE(nodes.emplace_back(own_peer(id))->connect("n1", Deadline::after_ms(20'000)));
}

TEST_F(Shares, when_a_link_of_the_key_ends_another_one_is_let_in) {
  start(ana.line("run=none"));
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(join(ana).peer) << i;
  const auto client = peer(2, ana);
  {
    const auto refused = client->connect("n1", Deadline::after_ms(100));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, TC_ERR_LIMIT) << refused.error().message;
  }
  raws.front()->vanish();
  const auto link = client->connect("n1", Deadline::after_ms(20'000));
  EXPECT_TRUE(link) << link.error().message;
}

TEST_F(Shares, what_a_key_announces_must_fit_its_share_and_others_go_on) {
  start_small(ana.line("run=none") + bob.line("run=any"));
  constexpr size_t announced = 6 * mib;  // two fit into half of `message-memory`
  for (int i = 0; i < 3; ++i) {
    auto& raw = join(ana);
    ASSERT_TRUE(raw.send(Kind::fragment, more_pieces, beginning_of_call(5, announced, 1024)));
  }
  auto& third = *raws.back();
  ASSERT_TRUE(run_until([&] { return third.reply_to(5).has_value(); }));
  EXPECT_EQ(third.reply_to(5)->status, TC_ERR_LIMIT);
  EXPECT_THAT(third.reply_to(5)->message, HasSubstr("12582912 bytes of this peer's messages wait or are under way, "
                                                    "6291456 more are wanted, and its share of message-memory is "
                                                    "16777216"));
  EXPECT_FALSE(raws.front()->reply_to(5));
  EXPECT_EQ(call(*peer(2, bob), echo, std::string(7 * mib, 'x'))->status, TC_OK);
  EXPECT_EQ(call(*own_peer(3), echo, std::string(7 * mib, 'x'))->status, TC_OK);
}

TEST_F(Shares, the_largest_message_fits_the_share_however_small_the_memory_is) {
  start(ana.line("run=any"), [](Config& config) {
    config.max_message = largest;
    config.message_memory = largest + 2 * mib;
  });
  const auto client = peer(2, ana);
  for (int i = 0; i < 3; ++i) {
    const auto answer = call(*client, load_bundle("weigh"), std::string(largest - 4096, 'x'));
    EXPECT_EQ(answer->status, TC_ERR_IFUNC) << "it runs, and says that there is no scale: " << answer->message;
  }
}

}  // namespace
}  // namespace tc::node::test
