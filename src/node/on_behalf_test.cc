// SPDX-License-Identifier: Apache-2.0
//
// On whose behalf: a call that goes on by way of others may do, at each node, what that node grants each of them.
#include <cstdlib>
#include <numeric>
#include <random>

#include "node/testing/keyring_kit.h"
#include "trust/key_file.h"

namespace tc::node::test {
namespace {

using ::testing::HasSubstr;

// What a line of a keyring grants, or that there is none.
enum class Granted : uint8_t { unknown, nothing, other, secret };

constexpr std::string_view fields_of(Granted granted) {
  if (granted == Granted::nothing) return "run=none";
  return granted == Granted::other ? "run=any read=other" : "run=any read=secret";
}
std::string line(const Person& who, Granted granted) {
  return granted == Granted::unknown ? "" : who.line(std::string(fields_of(granted)));
}

// Nodes n0, n1 and n2, each with a key and a keyring of its own, and clients n7 (ana's) and n8 (bob's).
class OnBehalf : public ::testing::Test, protected Cluster {
 protected:
  static constexpr uint32_t size = 3;

  OnBehalf() {
    for (uint32_t id = 0; id < size; ++id) net.network.make_foreign(fmt::format("n{}", id), node[id].public_key());
    net.network.make_foreign("n7", ana.public_key());
    net.network.make_foreign("n8", bob.public_key());
    for (const auto* const one : {&node[0], &node[1], &node[2], &ana, &bob}) everybody += one->line("run=any");
    write("clients", everybody);
  }
  void write(const std::string& name, const std::string& lines) {
    ASSERT_TRUE(write_file_atomically(net.home.path() / name, as_bytes(lines)));
  }
  std::string path(const std::string& name) { return (net.home.path() / name).string(); }

  // `lines`: of the keyring of each.
  void start(const std::array<std::string, size>& lines, const Net::Adjust& adjust = {}) {
    for (uint32_t id = 0; id < size; ++id) {
      const auto name = fmt::format("ring{}", id);
      write(name, lines[id]);
      nodes.push_back(net.make(id, [&](Config& config) {
        for (uint32_t other = 0; other < size; ++other) config.cluster.push_back(fmt::format("n{}", other));
        config.keyring = path(name);
        if (adjust) adjust(config);
      }));
      nodes.back()->expose("secret", secret, sizeof secret);
    }
    clients[0] = client(7);
    clients[1] = client(8);
    Cluster::start();
  }
  std::unique_ptr<Node> client(uint32_t id) {
    return net.make(id, [&](Config& config) { config.keyring = path("clients"); });
  }
  void reload(const std::array<std::string, size>& lines) {
    running.clear();
    for (uint32_t id = 0; id < size; ++id) {
      write(fmt::format("ring{}", id), lines[id]);
      ASSERT_TRUE(nodes[id]->reload_keys());
    }
    for (int polls = 0; polls < 2000; ++polls)  // enough for their housekeeping, which takes the lines over
      for (auto& one : nodes) one->poll();
    Cluster::start();
  }
  // "12": by way of n0 and n1 to n2, which answers.
  std::shared_ptr<Future> errand(Node& from, std::string_view way, const Bundle& bundle = load_bundle("errand")) {
    auto* const link = test::connect(from, "n0");
    auto future = test::call(from, *link, *test::message(from, bundle, way));
    (void)from.close(*link, Deadline::after_ms(20'000));  // lest the links of many rounds add up
    return future;
  }

  Person ana{"ana"}, bob{"bob"};
  std::array<Person, size> node{Person("north"), Person("east"), Person("south")};
  std::string everybody;  // may do everything
  unsigned char secret[6] = {'s', 'e', 'c', 'r', 'e', 't'};
  std::array<std::unique_ptr<Node>, 2> clients;
};

TEST_F(OnBehalf, a_peer_reads_by_way_of_another_what_it_may_read_itself) {
  start({everybody, everybody, everybody});
  const auto answer = errand(*clients[0], "12");
  EXPECT_EQ(text_of(*answer), "secret") << answer->message;
}

TEST_F(OnBehalf, a_peer_that_may_do_nothing_does_nothing_by_way_of_one_that_may_do_everything) {
  start({everybody, node[0].line("run=any") + ana.line("run=none") + node[2].line(), everybody});
  expect_denied(*errand(*clients[0], "1"),
                "north (keyring, line 1) calls on behalf of ana (keyring, line 2): "
                "keyring, line 2 (ana): run=none");
  EXPECT_EQ(text_of(*errand(*clients[1], "")), "secret");
}

TEST_F(OnBehalf, an_unknown_key_is_refused_with_its_name_that_of_the_peer_and_the_command) {
  start({everybody, node[0].line("run=any"), everybody});
  const auto refused = errand(*clients[0], "1");
  expect_denied(*refused, "north (keyring, line 1) calls on behalf of another: " + ana.public_key().text());
  EXPECT_THAT(refused->message, HasSubstr("ifunc key trust NAME " + ana.public_key().text()));
}

TEST_F(OnBehalf, where_everybody_is_trusted_so_are_those_on_whose_behalf_calls_are_made) {
  start({everybody, "", ""}, [](Config& config) {
    if (config.id != 0) config.trust = Trust::any;
  });
  EXPECT_EQ(text_of(*errand(*clients[0], "12")), "secret");
}

TEST_F(OnBehalf, two_nodes_of_one_key_grant_no_more_than_either_alone) {
  // north and east are nodes of one user, with one key.
  ASSERT_TRUE(trust::write_key_file(path("shared.key"), node[0].key));
  for (uint32_t id = 0; id < 2; ++id) net.network.make_foreign(fmt::format("n{}", id), node[0].public_key());
  const auto limited = ana.line("run=any read=other") + bob.line("run=any");
  start({limited, limited, everybody}, [&](Config& config) { config.key = path("shared.key"); });
  const auto refused = errand(*clients[0], "1");
  EXPECT_EQ(refused->status, TC_ERR_IFUNC) << refused->message;
  EXPECT_THAT(refused->message, HasSubstr("no secret for me"));
  EXPECT_EQ(text_of(*errand(*clients[1], "1")), "secret");
  EXPECT_EQ(errand(*clients[0], "101")->status, TC_ERR_IFUNC) << "to and fro";
}

TEST_F(OnBehalf, who_is_known_fully_on_the_way_is_not_forgotten_behind_it) {
  // east trusts ana fully, as one that bears its own key, and south does not.
  ASSERT_TRUE(trust::write_key_file(path("ana.key"), ana.key));
  start({everybody, everybody, node[1].line("run=any") + node[0].line("run=any") + ana.line("run=any read=other")},
        [&](Config& config) {
          if (config.id == 1) config.key = path("ana.key");
        });
  EXPECT_EQ(errand(*clients[0], "12")->status, TC_ERR_IFUNC);
  EXPECT_EQ(text_of(*errand(*clients[0], "1")), "secret");
}

TEST_F(OnBehalf, a_call_to_its_own_node_stays_on_behalf_of_others) {
  start({everybody, node[0].line("run=any") + ana.line("run=any read=other"), everybody});
  EXPECT_EQ(errand(*clients[0], "111")->status, TC_ERR_IFUNC);
  EXPECT_EQ(text_of(*errand(*clients[0], "00")), "secret");
}

TEST_F(OnBehalf, who_may_run_signed_code_only_runs_no_other_by_way_of_one_that_may) {
  start({everybody, node[0].line("run=any") + ana.line("run=signed") + bob.line("run=any read=other"), everybody});
  expect_denied(*errand(*clients[0], "1"),
                "has no signature of a key in the keyring; ana (keyring, line 2) may run signed code only");
  EXPECT_EQ(text_of(*errand(*clients[0], "1", ana.signs(load_bundle("errand")))), "secret");
  const auto by_bob = errand(*clients[0], "1", bob.signs(renamed(load_bundle("errand"), "other")));
  EXPECT_NE(by_bob->status, TC_OK) << "its author may not read it";
}

TEST_F(OnBehalf, a_line_that_is_taken_back_ends_what_ran_on_its_behalf) {
  start({everybody, everybody, everybody});
  EXPECT_EQ(text_of(*errand(*clients[0], "1")), "secret");
  reload({everybody, node[0].line("run=any") + ana.line("run=any read=other"), everybody});
  EXPECT_EQ(errand(*clients[0], "1")->status, TC_ERR_IFUNC);
  reload({everybody, node[0].line("run=any") + ana.line("revoked=2026-01-01"), everybody});
  expect_denied(*errand(*clients[0], "1"), "the key was revoked");
  reload({everybody, everybody, everybody});
  EXPECT_EQ(text_of(*errand(*clients[0], "1")), "secret");
}

TEST_F(OnBehalf, the_budget_for_code_of_those_on_whose_behalf_it_comes_counts) {
  start({everybody, node[0].line("run=any") + ana.line("run=any code=100"), everybody});
  const auto refused = errand(*clients[0], "1");
  EXPECT_EQ(refused->status, TC_ERR_LIMIT);
  EXPECT_THAT(refused->message, HasSubstr("ana (keyring, line 2) may keep 100 bytes of code here"));
}

TEST_F(OnBehalf, where_no_node_may_make_another_one_connect_answers_come_back_by_the_links_that_the_call_took) {
  std::string lines;
  for (const auto* const one : {&node[0], &node[1], &node[2], &ana, &bob}) lines += one->line("read=secret");
  start({lines, lines, lines});
  for (const std::string way : {"1", "12", "1012", "0", "00", "2121"})
    for (int again = 0; again < 2; ++again)
      EXPECT_EQ(text_of(*errand(*clients[0], way, ana.signs(load_bundle("errand")))), "secret") << way;
  stop();
  for (const auto& one : nodes)
    one->links().each([&](Link& link) {
      EXPECT_FALSE(!link.channel().is_accepted() && link.peer().address == "n7") << "it connected to the caller";
    });
}

// ---- Peers that name others

// A peer with ana's key that sends frames by hand to n0.
class Liar : public OnBehalf {
 protected:
  void begin(const std::string& lines) {
    net.network.make_foreign("raw:1", ana.public_key());
    start({lines, everybody, everybody});
    raw.listen("raw:1");
    raw.connect("n0");
    ASSERT_TRUE(tc::test::run_until([&] { return raw.peer.has_value(); }, [&] { raw.progress(); }));
  }
  static wire::Chain on_behalf_of(const std::vector<const Person*>& people) {
    std::vector<wire::Chain::Key> keys;
    for (const auto* const one : people) keys.push_back(one->public_key().bytes);
    return wire::Chain(std::move(keys));
  }
  void call(uint32_t number, uint64_t token, const wire::Chain& chain) {
    const auto bundle = load_bundle("errand");
    Bytes section;
    wire::append_code(section, {bundle.id(), bundle.carried(), 0, chain}, bundle.bytes_for(bundle.carried()));
    raw.send(wire::Kind::call_code, wire::flag_call_header, number, call_header(token) + section);
  }
  std::string answer_to(uint64_t token) {
    const bool came = tc::test::run_until([&] { return raw.reply_to(token).has_value() || raw.bye.has_value(); },
                                          [&] { raw.progress(); });
    if (!came) return "nothing";
    if (raw.bye) return raw.bye->reason;
    const auto reply = raw.reply_to(token);
    return reply->status == TC_OK ? std::string(as_text(reply->bytes)) : reply->message;
  }
  RawPeer raw{net.network};
};

TEST_F(Liar, gains_nothing_by_a_mightier_name) {
  begin(ana.line("run=any read=other") + bob.line("run=any"));
  call(0, 5, on_behalf_of({&bob}));
  EXPECT_THAT(answer_to(5), HasSubstr("no secret for me"));
}

TEST_F(Liar, calls_by_one_number_on_behalf_of_one_and_the_same) {
  begin(everybody);
  call(0, 5, on_behalf_of({&bob}));
  EXPECT_EQ(answer_to(5), "secret");
  call(1, 6, {});
  EXPECT_EQ(answer_to(6), "secret");
  call(0, 7, on_behalf_of({&bob, &node[1]}));
  EXPECT_THAT(answer_to(7), HasSubstr("code number 0 is called on behalf of 2 others now when it was of 1 before"));
}

TEST_F(Liar, turns_no_number_of_its_own_into_one_of_others) {
  begin(everybody);
  call(0, 5, {});
  EXPECT_EQ(answer_to(5), "secret");
  call(0, 6, on_behalf_of({&bob}));
  EXPECT_THAT(answer_to(6), HasSubstr("code number 0 is called on behalf of 1 others now when it was of 0 before"));
}

TEST_F(Liar, names_no_more_than_eight) {
  begin(everybody);
  call(0, 5, on_behalf_of(std::vector<const Person*>(9, &bob)));
  EXPECT_THAT(answer_to(5), HasSubstr("a call on behalf of 9 others when at most 8 may be named"));
}

TEST_F(Liar, fills_no_memory_with_names) {
  begin(everybody);
  for (uint32_t number = 0; number < 5000; ++number) {
    call(number, number + 1, on_behalf_of({&bob}));
    if (number % 50 == 49) ASSERT_EQ(answer_to(number + 1), "secret");
  }
  call(0, 6000, on_behalf_of({&bob}));
  EXPECT_EQ(answer_to(6000), "secret") << "what was forgotten may come again";
}

// ---- All combinations
//
// 60 of them, or with TC_ALL_RIGHTS=1 the 864 that there are, which takes a minute.

// What each of four may do, where it matters: ana and bob call, north and east pass on.
struct Grants {
  std::array<Granted, 2> at_north;           // ana, bob
  std::array<Granted, 2> at_east, at_south;  // the same
  Granted north_at_east, north_at_south, east_at_south;

  // A caller may have 3 x 4 x 4 different rights at the three nodes; ana has one half of them, and bob the other.
  static constexpr unsigned halves = 24, combinations = halves * 3 * 4 * 3;

  explicit Grants(unsigned index) {
    const auto next = [](unsigned& left, Granted least) {
      const unsigned values = 4 - static_cast<unsigned>(least);
      const auto value = static_cast<Granted>(static_cast<unsigned>(least) + left % values);
      left /= values;
      return value;
    };
    for (size_t who = 0; who < 2; ++who) {
      unsigned left = index % halves + who * halves;
      at_north[who] = next(left, Granted::nothing);
      at_east[who] = next(left, Granted::unknown);
      at_south[who] = next(left, Granted::unknown);
    }
    unsigned left = index / halves;
    north_at_east = next(left, Granted::nothing);
    north_at_south = next(left, Granted::unknown);
    east_at_south = next(left, Granted::nothing);
  }
  // Of a call that travels `way`.
  std::string expected(size_t who, std::string_view way) const {
    std::vector<std::vector<Granted>> at = {
        {at_north[who]}, {at_east[who], north_at_east}, {at_south[who], north_at_south, east_at_south}};
    at.resize(way.size() + 1);
    const auto runs = [](Granted one) { return one > Granted::nothing; };
    for (const auto& node : at)
      if (!std::ranges::all_of(node, runs)) return "denied";
    return std::ranges::all_of(at.back(), [](Granted one) { return one == Granted::secret; }) ? "secret" : "no secret";
  }
};

std::string outcome(const Future& future) {
  if (future.status == TC_OK) return text_of(future);
  return future.status == TC_ERR_DENIED ? "denied" : "no secret";
}

TEST_F(OnBehalf, three_nodes_grant_four_principals_what_the_table_says) {
  std::vector<unsigned> chosen(Grants::combinations);
  std::iota(chosen.begin(), chosen.end(), 0u);
  if (std::getenv("TC_ALL_RIGHTS") == nullptr) {
    std::ranges::shuffle(chosen, std::mt19937(20261125));
    chosen.resize(60);
  }
  start({everybody, everybody, everybody});
  for (const unsigned round : chosen) {
    const Grants grants(round);
    reload({line(ana, grants.at_north[0]) + line(bob, grants.at_north[1]) + node[1].line("run=any") +
                node[2].line("run=any"),
            line(ana, grants.at_east[0]) + line(bob, grants.at_east[1]) + line(node[0], grants.north_at_east) +
                node[2].line("run=any"),
            line(ana, grants.at_south[0]) + line(bob, grants.at_south[1]) + line(node[0], grants.north_at_south) +
                line(node[1], grants.east_at_south)});
    for (const std::string way : {"12", "1", "", "12"})
      for (size_t who = 0; who < 2; ++who) {
        const auto future = errand(*clients[who], way);
        ASSERT_EQ(outcome(*future), grants.expected(who, way))
            << "round " << round << ", " << (who == 0 ? "ana" : "bob") << " by way of '" << way
            << "': " << status_name(future->status) << ": " << future->message;
      }
  }
}

}  // namespace
}  // namespace tc::node::test
