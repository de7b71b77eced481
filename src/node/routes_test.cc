// SPDX-License-Identifier: Apache-2.0
//
// What a peer says of itself, and to whom calls and answers go: its address, its number, its instance, the return addresses
// that it names.
#include "node/testing/keyring_kit.h"

namespace tc::node::test {
namespace {

using ::testing::HasSubstr;
using wire::Kind;

// The node is number 0 at here:77 of a cluster, bob's is number 1 at here:1, and eve has a peer on the same host.
class Routes : public ::testing::Test {
 protected:
  void start(const std::string& lines, const Net::Adjust& adjust = {}) {
    ASSERT_TRUE(write_file_atomically(net.home.path() / "keyring", as_bytes(lines)));
    node = net.make(0, [&](Config& config) {
      config.listen = "here:77";
      config.cluster = {"here:77", "here:1"};
      if (adjust) adjust(config);
    });
    own.listen("own:1");
  }
  void outside_of_a_cluster(const std::string& lines) {
    start(lines, [](Config& config) { config.cluster.clear(); });
  }
  // The peer at `from` connects, and proves this key.
  void join(RawPeer& peer, const std::string& from, const Person& who) {
    net.network.make_foreign(from, who.public_key());
    peer.listen(from);
    peer.connect("here:77");
    ASSERT_TRUE(run_until([&] { return peer.peer.has_value() || peer.lost.has_value(); }));
    ASSERT_FALSE(peer.lost.has_value()) << peer.lost->message;
    turns();
  }
  bool run_until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] { turn(); });
  }
  void turn() {
    for (auto* const peer : {&mallory, &honest, &victim, &own}) peer->progress();
    node->poll();
    node->expire();
  }
  void turns() {
    for (int i = 0; i < 50; ++i) turn();
  }
  // The link of a peer, by the instance that it claims; the first of several.
  Link* link_of_peer(const RawPeer& peer, const Person& who) {
    Link* found = nullptr;
    node->links().each([&](Link& link) {
      if (link.is_ready() && link.peer().instance == peer.says.instance &&
          link.channel().origin().key == who.public_key())
        found = &link;
    });
    return found;
  }
  // Code that ana has signed, called with this return address.
  void call(RawPeer& peer, const std::string& ifunc, uint64_t token, const wire::ReturnAddress* named,
            std::string_view payload = "x") {
    const auto flags =
        static_cast<uint8_t>(wire::flag_call_header | (named != nullptr ? wire::flag_return_address : 0));
    ASSERT_TRUE(peer.send(Kind::call_code, flags, 0,
                          call_header(token) + (named != nullptr ? wire::encode_return_address(*named) : Bytes()) +
                              code_section(ana.signs(load_bundle(ifunc))) + as_bytes(payload)));
  }
  static std::vector<wire::ReturnAddress> named_in(const RawPeer& peer, Kind kind) {
    std::vector<wire::ReturnAddress> named;
    for (const auto& frame : peer.frames) {
      if (frame.header.kind != kind || (frame.header.flags & wire::flag_return_address) == 0) continue;
      size_t size = 0;
      const size_t skip = kind == Kind::reply ? 0 : wire::call_header_bytes;
      named.push_back(wire::decode_return_address(ByteView(frame.body).subspan(skip), size).value());
    }
    return named;
  }

  Net net;
  Person ana{"ana"}, bob{"bob"}, eve{"eve"};
  std::unique_ptr<Node> node;
  RawPeer mallory{net.network}, honest{net.network}, victim{net.network}, own{net.network};
};

// ---- The address that it says it listens at

class ClaimedAddress : public Routes, public testing::WithParamInterface<const char*> {};

TEST_P(ClaimedAddress, does_not_bring_calls_to_whose_line_does_not_say_that_it_is_there) {
  start(eve.line(GetParam()) + bob.line());
  mallory.says.address = "here:1";
  mallory.says.node_id = 1;
  join(mallory, "here:9", eve);
  auto* const lies = link_of_peer(mallory, eve);
  ASSERT_NE(lies, nullptr);
  EXPECT_NE(node->links().to_node(1).value(), lies);
  EXPECT_NE(node->links().find_or_reach("here:1").value(), lies) << "as by compile-at";
  EXPECT_NE(node->links().to_address("here:1"), lies);
}
INSTANTIATE_TEST_SUITE_P(OfALine, ClaimedAddress,
                         testing::Values("run=none", "", "run=any", "run=any in=cell", "at=here:9"),
                         [](const auto& one) { return "line" + std::to_string(one.index); });

TEST_F(Routes, who_has_the_address_in_its_line_is_called_by_its_own_link) {
  start(bob.line("run=none at=here:1"));
  honest.says.address = "here:1";
  join(honest, "here:1", bob);
  EXPECT_EQ(node->links().to_node(1).value(), link_of_peer(honest, bob));
}

TEST_F(Routes, an_address_that_a_reloaded_keyring_gives_to_another_key_is_lost) {
  start(eve.line("at=here:1"));
  mallory.says.address = "here:1";
  join(mallory, "here:9", eve);
  auto* const link = link_of_peer(mallory, eve);
  EXPECT_EQ(node->links().to_node(1).value(), link);
  ASSERT_TRUE(write_file_atomically(net.home.path() / "keyring", as_bytes(eve.line() + bob.line("at=here:1"))));
  ASSERT_TRUE(node->reload_keys());
  for (int i = 0; i < 2000; ++i) turn();
  EXPECT_FALSE(link->is_lost());
  EXPECT_NE(node->links().to_node(1).value(), link);
}

TEST_F(Routes, a_node_that_this_one_called_does_not_stand_for_another_address_that_it_claims) {
  start(eve.line("run=none at=here:9") + bob.line());
  net.network.make_foreign("here:9", eve.public_key());
  mallory.says.address = "here:1";
  mallory.listen("here:9");
  auto* const link = node->links().find_or_reach("here:9").value();
  ASSERT_TRUE(run_until([&] { return link->is_ready(); }));
  EXPECT_NE(node->links().to_node(1).value(), link);
}

TEST_F(Routes, a_connection_that_was_made_for_an_answer_takes_no_calls) {
  start(bob.line("run=any") + eve.line("run=any") + ana.line());
  net.network.make_foreign("here:1", eve.public_key());
  mallory.listen("here:1");
  join(honest, "here:5", bob);
  const wire::ReturnAddress named{mallory.says.instance = 4712, 1, "here:1"};
  call(honest, "echo", 5, &named);
  ASSERT_TRUE(run_until([&] { return mallory.reply_to(5).has_value(); }))
      << "bob may run any code, and name any address";
  auto* const link = link_of_peer(mallory, eve);
  ASSERT_NE(link, nullptr);
  EXPECT_NE(node->links().to_node(1).value(), link);
}

// ---- Its number and its instance

class ClaimedNumber : public Routes, public testing::WithParamInterface<std::pair<const char*, bool>> {};

TEST_P(ClaimedNumber, counts_outside_of_a_cluster_from_a_peer_that_is_believed_or_known) {
  const auto [line, counts] = GetParam();
  outside_of_a_cluster(eve.line(line));
  mallory.says.node_id = 5;
  mallory.says.address = "here:9";
  join(mallory, "here:9", eve);
  EXPECT_EQ(node->links().to_node(5).has_value(), counts);
}
INSTANTIATE_TEST_SUITE_P(OfALine, ClaimedNumber,
                         testing::Values(std::pair{"run=none", false}, std::pair{"", false},
                                         std::pair{"run=any in=cell", false}, std::pair{"run=any", true},
                                         std::pair{"run=none at=here:9", true}),
                         [](const auto& one) { return "line" + std::to_string(one.index); });

TEST_F(Routes, an_answer_does_not_go_to_whoever_claims_the_instance_of_its_caller) {
  start(eve.line("run=none") + bob.line());
  mallory.says.instance = honest.says.instance = 4713;
  join(mallory, "here:9", eve);
  join(honest, "there:1", bob);
  auto* const link = link_of_peer(honest, bob);
  ASSERT_NE(link, nullptr);
  const auto of_bob = std::make_shared<const wire::Chain>(std::vector{bob.public_key().bytes});
  EXPECT_EQ(node->links().ready_to({4713, 7, ""}, of_bob), link);
  EXPECT_EQ(node->links().ready_to({4713, 7, "here:1"}, of_bob), link);
  EXPECT_EQ(node->links().ready_to({4713, 7, ""}, nullptr), nullptr) << "nobody knows whose it is";
  EXPECT_EQ(node->links().ready_to({4713, 7, "", link->id()}, nullptr), link) << "the call came by it";
}

TEST_F(Routes, the_end_of_a_peer_that_only_claimed_to_be_a_node_is_told_to_nobody) {
  start(eve.line("run=none") + bob.line("run=any"));
  join(honest, "here:5", bob);
  mallory.says.instance = 99;
  mallory.says.node_id = 1;
  mallory.says.address = "here:1";
  join(mallory, "here:9", eve);
  mallory.vanish();
  turns();
  EXPECT_EQ(honest.find(Kind::cluster_event), nullptr);
}

TEST_F(Routes, the_end_of_a_peer_whose_key_belongs_to_its_address_is_told_to_the_others) {
  start(eve.line("run=none at=here:1") + bob.line("run=any"));
  join(honest, "here:5", bob);
  mallory.says.instance = 99;
  mallory.says.node_id = 1;
  mallory.says.address = "here:1";
  join(mallory, "here:1", eve);
  mallory.vanish();
  EXPECT_TRUE(run_until([&] { return honest.find(Kind::cluster_event) != nullptr; }));
}

TEST_F(Routes, a_link_to_an_address_that_a_reloaded_keyring_gives_to_another_key_ends) {
  start(bob.line("at=here:1"));
  net.network.make_foreign("here:1", bob.public_key());
  honest.listen("here:1");
  auto* const link = node->links().find_or_reach("here:1").value();
  ASSERT_TRUE(run_until([&] { return link->is_ready(); }));
  ASSERT_TRUE(
      write_file_atomically(net.home.path() / "keyring", as_bytes(bob.line("at=here:2") + eve.line("at=here:1"))));
  ASSERT_TRUE(node->reload_keys());
  ASSERT_TRUE(run_until([&] { return honest.lost.has_value(); }));
  EXPECT_THAT(honest.bye->reason, HasSubstr("eve"));
}

// ---- Return addresses

class NamedAddress : public Routes {
 protected:
  NamedAddress() {
    net.network.make_foreign("victim:1", bob.public_key());
    victim.listen("victim:1");
  }
  const wire::ReturnAddress named{99, 99, "victim:1"};
};

TEST_F(NamedAddress, of_a_peer_that_may_not_run_any_code_makes_no_connection_and_the_answer_comes_back) {
  start(eve.line() + ana.line() + bob.line());
  join(mallory, "here:9", eve);
  call(mallory, "echo", 5, &named, "mine");
  ASSERT_TRUE(run_until([&] { return !named_in(mallory, Kind::reply).empty(); }));
  EXPECT_EQ(named_in(mallory, Kind::reply)[0].instance, 99u);
  turns();
  EXPECT_FALSE(victim.peer.has_value());
  EXPECT_EQ(node->stat("links"), 1u);
}

TEST_F(NamedAddress, is_connected_to_where_the_keyring_knows_it) {
  start(eve.line() + ana.line() + bob.line("run=none at=victim:1"));
  victim.says.instance = 99;
  join(mallory, "here:9", eve);
  call(mallory, "echo", 5, &named, "mine");
  EXPECT_TRUE(run_until([&] { return victim.reply_to(5).has_value(); }));
}

TEST_F(NamedAddress, in_a_call_that_waits_when_its_peer_goes_makes_no_connection) {
  start(eve.line() + ana.line() + bob.line());
  join(mallory, "here:9", eve);
  ASSERT_TRUE(mallory.send(Kind::call, wire::flag_call_header | wire::flag_return_address, 3,
                           call_header(5) + wire::encode_return_address(named) + as_bytes("x")));
  ASSERT_TRUE(run_until([&] { return mallory.find(Kind::need) != nullptr; }));
  mallory.vanish();
  ASSERT_TRUE(run_until([&] { return node->stat("links") == 0u; }));
  turns();
  EXPECT_FALSE(victim.peer.has_value());
}

TEST_F(NamedAddress, does_not_go_on_to_a_node_that_would_connect_there_and_the_answer_comes_back_by_the_same_links) {
  start(eve.line() + ana.line() + bob.line("run=none at=here:1"));
  honest.says.address = "here:1";
  honest.says.node_id = 1;
  join(honest, "here:1", bob);
  for (const bool in_greeting : {true, false}) {
    SCOPED_TRACE(in_greeting);
    honest.frames.clear();
    RawPeer peer{net.network};
    peer.says.instance = in_greeting ? 99 : 98;
    peer.says.address = in_greeting ? "victim:1" : "";
    const auto from = in_greeting ? "here:8" : "here:9";
    net.network.make_foreign(from, eve.public_key());
    peer.listen(from);
    peer.connect("here:77");
    const auto until = [&](const std::function<bool()>& done) {
      return tc::test::run_until(done, [&] { peer.progress(), turn(); });
    };
    ASSERT_TRUE(until([&] { return peer.peer.has_value(); }));
    call(peer, "errand", 5, in_greeting ? nullptr : &named, "1");
    ASSERT_TRUE(until([&] { return honest.find(Kind::call_code) != nullptr || honest.find(Kind::call) != nullptr; }));
    const auto kind = honest.find(Kind::call_code) != nullptr ? Kind::call_code : Kind::call;
    ASSERT_EQ(named_in(honest, kind).size(), 1u);
    const auto goes_on = named_in(honest, kind)[0];
    EXPECT_EQ(goes_on.address, "");
    EXPECT_EQ(goes_on.instance, 99u);
    const auto answer = wire::encode_reply({.token = 5, .status = TC_OK, .bytes = as_bytes("well")});
    ASSERT_TRUE(honest.send(Kind::reply, wire::flag_return_address, 0, wire::encode_return_address(goes_on) + answer));
    if (in_greeting) {
      ASSERT_TRUE(until([&] { return peer.reply_to(5).has_value(); }));
      EXPECT_EQ(as_text(peer.reply_to(5)->bytes), "well");
    } else {
      ASSERT_TRUE(until([&] { return named_in(peer, Kind::reply).size() == 1; }));
    }
    EXPECT_FALSE(victim.peer.has_value());
  }
}

// Eve's peer calls code here that goes on to bob's.
class GoesOn : public Routes {
 protected:
  // Returns the return address that bob's node gets.
  wire::ReturnAddress go_on_from(const std::string& from, const std::string& says, const Net::Adjust& adjust = {}) {
    start(eve.line() + ana.line() + bob.line("run=none at=here:1"), adjust);
    honest.says.address = "here:1";
    honest.says.node_id = 1;
    join(honest, "here:1", bob);
    mallory.says.instance = 99;
    mallory.says.address = says;
    join(mallory, from, eve);
    call(mallory, "errand", 5, nullptr, "1");
    const auto comes = [&](Kind kind) { return named_in(honest, kind).size() == 1; };
    EXPECT_TRUE(run_until([&] { return comes(Kind::call) || comes(Kind::call_code); }));
    return named_in(honest, comes(Kind::call) ? Kind::call : Kind::call_code)[0];
  }
  Bytes answer_to(const wire::ReturnAddress& caller, size_t size) {
    const std::string text(size, 'x');
    return wire::encode_return_address(caller) +
           wire::encode_reply({.token = 5, .status = TC_OK, .bytes = as_bytes(text)});
  }
};

class OwnAddress : public GoesOn, public testing::WithParamInterface<std::array<const char*, 3>> {};

TEST_P(OwnAddress, goes_on_where_it_is_on_the_host_that_the_peer_comes_from_and_no_loopback_address) {
  const auto [from, says, goes_on] = GetParam();
  EXPECT_EQ(go_on_from(from, says).address, goes_on);
}
INSTANTIATE_TEST_SUITE_P(OfAPeer, OwnAddress,
                         testing::Values(std::array{"here:9", "here:22", "here:22"},
                                         std::array{"here:9", "victim:22", ""}, std::array{"::1:9", "::1:22", ""},
                                         std::array{"::1:9", "[::1]:22", ""},
                                         std::array{"::ffff:127.0.0.1:9", "::ffff:127.0.0.1:22", ""},
                                         std::array{"::ffff:127.0.0.1:9", "127.0.0.1:22", ""},
                                         std::array{"127.0.0.1:9", "127.0.0.1:22", ""},
                                         std::array{"fd00::1:9", "[fd00::1]:22", "[fd00::1]:22"},
                                         std::array{"::ffff:10.0.0.7:9", "10.0.0.7:22", "10.0.0.7:22"}),
                         [](const auto& one) { return "case" + std::to_string(one.index); });

TEST_F(GoesOn, a_large_answer_for_which_there_is_no_memory_fails_its_call_and_no_link) {
  const auto caller = go_on_from("here:9", "victim:22", [](Config& config) {
    config.max_message = 1 << 20;
    config.message_memory = 1 << 18;
  });
  const auto frame = wire::make_frame(Kind::reply, wire::flag_return_address, 0, answer_to(caller, 900'000));
  for (size_t at = 0; at < 400'000; at += 8000) {
    ASSERT_TRUE(honest.send(Kind::fragment, 0, ByteView(frame).subspan(at, 8000)));
    turn();
  }
  ASSERT_TRUE(run_until([&] { return mallory.reply_to(5).has_value(); }));
  EXPECT_EQ(mallory.reply_to(5)->status, TC_ERR_LIMIT) << mallory.reply_to(5)->message;
  EXPECT_THAT(mallory.reply_to(5)->message, HasSubstr("bytes came from node 1"));
  turns();
  EXPECT_FALSE(honest.lost.has_value());
}

TEST_F(GoesOn, a_call_that_had_not_left_when_the_next_link_was_lost_fails_at_its_caller) {
  // On one thread, so that a call has gone on, or waits to, when it was polled.
  (void)go_on_from("here:9", "victim:22", [](Config& config) { config.threads = 1; });
  // Bob's node reads nothing from here on: what goes on fills the stream, and then waits.
  const auto some_wait = [&] {
    bool found = false;
    node->links().each([&](const Link& one) { found |= one.channel().has_backlog(); });
    return found;
  };
  const std::string payload = "1" + std::string(10'000, 'x');
  uint64_t last = 100;
  while (!some_wait()) {
    ASSERT_LT(++last, 10'000u);
    ASSERT_TRUE(run_until(
        [&] { return mallory.send(Kind::call, wire::flag_call_header, 0, call_header(last) + as_bytes(payload)); }));
    mallory.progress();
    node->poll();
  }
  honest.vanish();
  ASSERT_TRUE(run_until([&] { return mallory.reply_to(last).has_value(); }));
  EXPECT_EQ(mallory.reply_to(last)->status, TC_ERR_DISCONNECTED) << mallory.reply_to(last)->message;
}

}  // namespace
}  // namespace tc::node::test
