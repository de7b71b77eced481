// SPDX-License-Identifier: Apache-2.0
//
// A cell serves one principal with one set of rights: what the code of one leaves behind, the code of another does not find.
#include <algorithm>

#include "node/testing/cell_kit.h"
#include "node/testing/keyring_kit.h"

namespace tc::node::test {
namespace {

// Each person's code runs in a cell.
class Principals : public WithKeyring {
 protected:
  void start_for_all(uint32_t cells = 4) {
    start(lines(), [&](Config& config) {
      config.cells = cells;
      config.isolate = Isolate::all;
    });
  }
  std::string lines(const std::string& of_ana = "run=any in=cell") const {
    return ana.line(of_ana) + bob.line("run=any in=cell") + eve.line("run=any in=cell");
  }
  pid_t process(Node& node) { return process_of(*call(node, misbehave, ask_for_process())); }
  // What its cell has kept since its first call. A caller has its answer before the cell is free again; until then, a call by
  // another link would go to another cell.
  std::string kept(Node& node, const std::string& said) {
    const auto calls = stat("cell-calls");
    const auto answer = call(node, keep, said);
    if (answer->status == TC_OK) EXPECT_TRUE(until([&] { return stat("cell-calls") > calls; }));
    return text_of(*answer);
  }
  bool until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [] { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }, 60'000);
  }
  bool is_gone(pid_t process) {
    return until([&] { return !children().contains(process); });
  }

  const Bundle misbehave = load_bundle("misbehave"), keep = load_bundle("keep");
};

TEST_F(Principals, what_the_code_of_one_leaves_behind_answers_nobody_else) {
  start_for_all();
  const auto first = peer(2, ana), second = peer(3, bob), own = own_peer(4);
  EXPECT_EQ(kept(*first, "of ana"), "of ana");
  EXPECT_EQ(kept(*second, "of bob"), "of bob");
  EXPECT_EQ(kept(*own, "of this user"), "of this user");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(kept(*first, "more"), "of ana") << "each keeps its own cell";
    EXPECT_EQ(kept(*second, "more"), "of bob");
    EXPECT_EQ(kept(*own, "more"), "of this user");
  }
  EXPECT_EQ(std::set({process(*first), process(*second), process(*own)}).size(), 3u);
  EXPECT_EQ(stat("cell-deaths"), 0u);
}

TEST_F(Principals, one_has_its_cell_by_all_its_links_and_for_all_its_code) {
  start_for_all();
  const auto first = peer(2, ana), second = peer(3, ana);
  const auto cell = process(*first);
  EXPECT_EQ(process(*second), cell);
  EXPECT_EQ(kept(*first, "by one link"), "by one link");
  EXPECT_EQ(kept(*second, "by another"), "by one link");
  EXPECT_EQ(process(*own_peer(4)), process(*own_peer(5))) << "this user is one";
}

TEST_F(Principals, nobody_has_a_cell_of_the_rights_that_it_had_before_the_keyring_was_read_again) {
  start_for_all();
  const auto client = peer(2, ana);
  const auto before = process(*client);
  EXPECT_EQ(kept(*client, "before"), "before");
  reload(lines("run=any in=cell read=other"));
  EXPECT_TRUE(is_gone(before)) << "even if nobody calls";
  EXPECT_EQ(kept(*client, "after"), "after");
  EXPECT_NE(process(*client), before);
  EXPECT_EQ(stat("cell-deaths"), 0u);
}

TEST_F(Principals, a_cell_whose_call_runs_while_the_keyring_is_read_ends_with_the_call) {
  const Gate gate;
  start_for_all();
  running.reset();
  ASSERT_TRUE(gate.expose(*target));
  run();
  const auto client = peer(2, ana);
  const auto before = process(*client);
  const auto linger = load_bundle("linger");
  const auto stays =
      client->call(*connect(*client, "n1"), *message(*client, linger, "x"), 0, Deadline::after_ms(20'000)).value();
  const auto poll = [&] { client->poll(); };
  ASSERT_TRUE(tc::test::run_until([&] { return gate.inside() == 1; }, poll, 60'000));
  reload(lines("run=any in=cell write=gate"));
  EXPECT_TRUE(children().contains(before));
  gate.open();
  ASSERT_TRUE(tc::test::run_until([&] { return stays->ready.load(); }, poll, 60'000));
  EXPECT_EQ(text_of(*stays), "x") << stays->message;
  EXPECT_TRUE(is_gone(before));
  EXPECT_NE(process(*client), before);
  EXPECT_EQ(stat("cell-deaths"), 0u);
}

TEST_F(Principals, code_of_different_authors_shares_no_cell) {
  start(ana.line("in=cell") + bob.line("read=a") + eve.line("read=b"));
  const auto client = peer(2, ana);
  const auto by_bob = process_of(*call(*client, bob.signs(misbehave), ask_for_process()));
  EXPECT_EQ(text_of(*call(*client, bob.signs(keep), "of bob")), "of bob");
  EXPECT_EQ(process_of(*call(*client, bob.signs(misbehave), ask_for_process())), by_bob);
  EXPECT_EQ(text_of(*call(*client, eve.signs(load_bundle("echo")), "of eve")), "of eve");
  running.reset();
  // bob's, eve's, and the one in reserve.
  EXPECT_TRUE(run_until({target.get(), client.get()}, [] { return children().size() == 3; }));
  run();
}

TEST_F(Principals, who_called_least_of_late_makes_way_where_more_call_than_there_are_cells) {
  start_for_all(2);
  const auto first = peer(2, ana), second = peer(3, bob), third = peer(4, eve);
  const auto of_ana = process(*first), of_bob = process(*second);
  EXPECT_EQ(process(*first), of_ana);
  const auto of_eve = process(*third);
  EXPECT_TRUE(is_gone(of_bob));
  EXPECT_EQ(process(*first), of_ana);
  EXPECT_EQ(process(*third), of_eve);
  EXPECT_NE(process(*second), of_bob);
  EXPECT_TRUE(until([] { return children().size() == 3; })) << "two, and one in reserve";
  EXPECT_EQ(stat("cell-deaths"), 0u);
}

TEST_F(Principals, three_are_served_in_turn_by_one_cell_at_a_time) {
  start_for_all(1);
  const std::unique_ptr<Node> clients[] = {peer(2, ana), peer(3, bob), peer(4, eve)};
  std::set<pid_t> seen;
  for (int round = 0; round < 10; ++round)
    for (const auto& client : clients) {
      const auto said = std::to_string(seen.size());
      EXPECT_EQ(kept(*client, said), said);
      EXPECT_TRUE(seen.insert(process(*client)).second) << "a cell is never used again for somebody else";
    }
  EXPECT_EQ(stat("cell-deaths"), 0u);
  EXPECT_EQ(logged().find("a cell"), std::string::npos) << logged();
}

TEST_F(Principals, a_call_is_refused_where_no_other_cell_can_be_started_and_those_who_have_one_are_served) {
  const auto program = net.home.path() / "cell";
  std::filesystem::copy_file(cell::CellProcess::find_program().value(), program);
  start(lines(), [&](Config& config) { config.cell = program.string(); });
  const auto first = peer(2, ana), second = peer(3, bob), third = peer(4, eve);
  const auto cell = process(*first);
  const auto runs = [&](pid_t child) {
    std::error_code failed;
    return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", child), failed) == program;
  };
  ASSERT_TRUE(until([&] {
    const auto started = children();
    return started.size() == 2 && std::ranges::all_of(started, runs);
  }));
  std::filesystem::remove(program);
  EXPECT_EQ(kept(*second, "of bob"), "of bob") << "in the one that is in reserve";
  EXPECT_EQ(call(*third, keep, "of eve")->status, TC_ERR_NOT_FOUND);
  EXPECT_EQ(process(*first), cell);
}

// North calls on behalf of ana and bob, who have the same rights at east.
class PrincipalsOnBehalf : public ::testing::Test, protected Cluster {
 protected:
  PrincipalsOnBehalf() {
    const std::pair<const char*, const Person*> places[] = {{"n0", &north}, {"n1", &east}, {"n7", &ana}, {"n8", &bob}};
    std::string everybody;
    for (const auto& [address, person] : places) {
      net.network.make_foreign(address, person->public_key());
      everybody += person->line("run=any");
    }
    const auto keyring = (net.home.path() / "everybody").string();
    EXPECT_TRUE(write_file_atomically(keyring, as_bytes(everybody)));
    make_nodes(2, [&](Config& config) {
      config.keyring = keyring;
      if (config.id == 1) config.isolate = Isolate::all;
    });
    for (const uint32_t id : {7u, 8u})
      clients.push_back(net.make(id, [&](Config& config) { config.keyring = keyring; }));
    Cluster::start();
  }
  pid_t process(Node& client) {
    const auto onwards = ask_to(What::forward, {1}, ask_for_process());
    return process_of(*test::call(client, *test::connect(client, "n0"), *message(client, misbehave, onwards)));
  }
  const Bundle misbehave = load_bundle("misbehave");
  Person ana{"ana"}, bob{"bob"}, north{"north"}, east{"east"};
  std::vector<std::unique_ptr<Node>> clients;
};

TEST_F(PrincipalsOnBehalf, calls_of_one_node_on_behalf_of_different_keys_share_no_cell) {
  const auto of_ana = process(*clients[0]), of_bob = process(*clients[1]);
  EXPECT_NE(of_ana, of_bob);
  EXPECT_EQ(process(*clients[0]), of_ana);
  EXPECT_EQ(process(*clients[1]), of_bob);
}

}  // namespace
}  // namespace tc::node::test
