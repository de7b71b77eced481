// SPDX-License-Identifier: Apache-2.0
//
// Which key a node expects at an address, and what it writes down about keys that it has met.
#include "node/authority.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include <sstream>

#include "base/clock.h"
#include "node/first_contacts.h"
#include "node/testing/keyring_kit.h"
#include "node/use_recorder.h"
#include "trust/key_file.h"
#include "trust/private_file.h"

namespace tc::node::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Not;
using ::testing::UnorderedElementsAre;
using namespace std::chrono_literals;

class TheAuthority : public testing::Test {
 protected:
  TheAuthority() { ::setenv("THREECHAINS_HOME", home.path().c_str(), 1); }
  Authority& start(const std::string& keyring = "") {
    EXPECT_TRUE(write_file_atomically(home.path() / "keyring", as_bytes(keyring)));
    authority = std::make_unique<Authority>(config, self, logger);
    EXPECT_TRUE(authority->start());
    authority->use_keys(&own);
    return *authority;
  }
  static transport::Origin with(const trust::PublicKey& key, bool is_temporary = false) {
    transport::Origin origin;
    origin.is_key_temporary = is_temporary;
    origin.host = "10.0.0.7";
    origin.text = "10.0.0.7:41234";
    origin.key = key;
    return origin;
  }
  // Connects to a node that lets us in.
  std::string why_not(std::string_view address, const Person& who, bool is_temporary = false) {
    const auto there = with(who.public_key(), is_temporary);
    const auto status = authority->is_expected(address, there);
    if (status) authority->remember(address, there);
    return status ? "" : status.error().message;
  }
  // All that it has logged when it ends, with what it says when the file is written.
  std::string logged() {
    authority.reset();
    return log.str();
  }

  TemporaryDirectory home = TemporaryDirectory::create().value();
  Config config = Config::defaults();
  Identity self;
  std::ostringstream log;
  spdlog::logger logger{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log)};
  trust::KeyPair own = trust::KeyPair::fresh().value();
  Person ana{"ana"}, bob{"bob"};
  std::unique_ptr<Authority> authority;
};

TEST_F(TheAuthority, remembers_the_first_key_at_an_address_and_refuses_another) {
  start();
  EXPECT_EQ(why_not("a:1", ana), "");
  EXPECT_THAT(why_not("a:1", bob), HasSubstr("ifunc key forget a:1")) << "whether it is written or not";
  EXPECT_THAT(logged(), HasSubstr("first contact with a:1: it answers with key " + ana.public_key().text() +
                                  "; from now on, no other key is accepted there"));
  log.str("");
  start();
  EXPECT_EQ(why_not("a:1", ana), "");
  EXPECT_EQ(logged(), "") << "it is known now";
  start();
  EXPECT_THAT(why_not("a:1", bob), HasSubstr("ifunc key forget a:1"));
  EXPECT_TRUE(trust::KnownNodes(home.path() / "known-nodes").forget("a:1").value());
  EXPECT_EQ(why_not("a:1", bob), "");
}

// Whoever of this host's users listens there would get the code and its payload.
TEST_F(TheAuthority, meets_nobody_for_the_first_time_at_an_address_of_this_host) {
  const auto why_not_here = [&](const Person& who, bool is_temporary = false) {
    auto there = with(who.public_key(), is_temporary);
    there.is_this_host = true;
    const auto status = authority->is_expected("localhost:7001", there);
    if (status) authority->remember("localhost:7001", there);
    return status ? "" : status.error().message;
  };
  start();
  EXPECT_EQ(
      why_not_here(ana),
      fmt::format("it answers with key {0}, which is not known here, and any user of this host may listen at "
                  "127.0.0.1:7001: compare it with `ifunc key show` there, then say `ifunc key trust NAME {0} --at "
                  "127.0.0.1:7001`",
                  ana.public_key().text()));
  EXPECT_THAT(why_not_here(ana, true), HasSubstr("`ifunc key new default` there makes one to trust"));
  EXPECT_FALSE(std::filesystem::exists(home.path() / "known-nodes"));

  start(ana.line("at=127.0.0.1:7001"));
  EXPECT_EQ(why_not_here(ana), "") << "as the refusal said";
  start(ana.line());
  EXPECT_EQ(why_not_here(ana), "");
  start();
  EXPECT_EQ(why_not_here(ana), "") << "it is remembered";
  EXPECT_TRUE(trust::KnownNodes(home.path() / "known-nodes").forget("127.0.0.1:7001").value());
  EXPECT_NE(why_not_here(ana), "");

  config.first_contact = FirstContact::remember;
  start();
  EXPECT_EQ(why_not_here(ana), "") << "somebody has said so";
}

TEST_F(TheAuthority, meets_other_keys_of_its_own_user_at_an_address_of_this_host) {
  const auto other = trust::KeyPair::fresh().value();
  auto there = with(other.public_key());
  there.is_this_host = true;
  start();
  EXPECT_FALSE(authority->is_expected("127.0.0.1:1", there));
  ASSERT_TRUE(trust::write_key_file(trust::key_path("other").value(), other));
  EXPECT_TRUE(authority->is_expected("127.0.0.1:1", there));
  config.first_contact = FirstContact::refuse;
  start();
  EXPECT_FALSE(authority->is_expected("127.0.0.1:1", there));
}

TEST_F(TheAuthority, remembers_nothing_of_a_node_that_did_not_let_it_in) {
  start();
  EXPECT_TRUE(authority->is_expected("a:1", with(ana.public_key())));
  EXPECT_EQ(why_not("a:1", bob), "");
}

TEST_F(TheAuthority, remembers_no_key_that_lasts_only_as_long_as_its_process) {
  start();
  EXPECT_EQ(why_not("a:1", ana, true), "");
  EXPECT_THAT(log.str(), AllOf(HasSubstr("lasts only as long as its process and is not remembered"),
                               HasSubstr("`ifunc key new default` there")));
  EXPECT_EQ(why_not("a:1", bob), "");
  EXPECT_THAT(why_not("a:1", ana, true), HasSubstr("ifunc key forget a:1")) << "what is remembered counts";
}

TEST_F(TheAuthority, recommends_no_key_that_lasts_only_as_long_as_its_process) {
  start(bob.line());
  EXPECT_THAT(why_not("a:1", ana, true),
              AllOf(HasSubstr("`ifunc key new default` there makes one to trust"), Not(HasSubstr("ifunc key trust"))));
  const auto refused = authority->rights_of(with(ana.public_key(), true));
  EXPECT_THAT(refused.error().message,
              AllOf(HasSubstr("make one that lasts, with `ifunc key new default`"), Not(HasSubstr("ifunc key trust"))));
}

TEST_F(TheAuthority, takes_the_spellings_of_an_address_as_one) {
  start();
  EXPECT_EQ(why_not("127.0.0.1:7001", ana), "");
  for (const auto* const address : {"localhost:7001", "LocalHost.:7001", "127.1:7001", "127.0.1:7001",
                                    "127.000.000.001:7001", "[::ffff:127.0.0.1]:7001"})
    EXPECT_THAT(why_not(address, bob), HasSubstr("when 127.0.0.1:7001 had")) << address;
  EXPECT_EQ(why_not("127.0.0.1:7002", bob), "");
}

TEST_F(TheAuthority, expects_the_key_whose_line_says_that_it_answers_there) {
  start(ana.line("at=10.0.0.7:7001,localhost:7002") + bob.line());
  EXPECT_EQ(why_not("10.0.0.7:7001", ana), "");
  EXPECT_EQ(why_not("127.0.0.1:7002", ana), "");
  EXPECT_FALSE(std::filesystem::exists(home.path() / "known-nodes")) << "the keyring says it";
  EXPECT_THAT(why_not("10.0.0.7:7001", bob),
              HasSubstr("when ana (keyring, line 1) has at=10.0.0.7:7001,127.0.0.1:7002"));
  EXPECT_FALSE(authority->may_stand_for("10.0.0.7:7001", with(bob.public_key())));
  EXPECT_TRUE(authority->may_stand_for("10.0.0.7:7001", with(ana.public_key())));
  start(ana.line("at=10.0.0.7:7001") + bob.line("at=10.0.0.7:7001"));
  EXPECT_EQ(why_not("10.0.0.7:7001", ana) + why_not("10.0.0.7:7001", bob), "") << "one of two";
}

TEST_F(TheAuthority, refuses_unknown_keys_when_first_contact_is_refuse) {
  config.first_contact = FirstContact::refuse;
  start();
  EXPECT_THAT(why_not("a:1", ana), HasSubstr("ifunc key trust NAME " + ana.public_key().text()));
  start(ana.line());
  EXPECT_EQ(why_not("a:1", ana), "");
}

TEST_F(TheAuthority, refuses_unknown_keys_once_the_keyring_has_a_line) {
  start(bob.line());
  EXPECT_THAT(why_not("a:1", ana), AllOf(HasSubstr("first-contact is keyring, which has other keys"),
                                         HasSubstr("ifunc key trust NAME " + ana.public_key().text())));
  EXPECT_EQ(why_not("a:1", bob), "");
  config.first_contact = FirstContact::remember;
  start(bob.line());
  EXPECT_EQ(why_not("b:1", ana), "");
}

TEST_F(TheAuthority, a_key_of_the_keyring_does_not_stand_in_for_one_that_is_known_at_the_address) {
  start();
  EXPECT_EQ(why_not("a:1", ana), "") << "before the keyring had a line";
  start(bob.line());
  EXPECT_THAT(why_not("a:1", bob), HasSubstr("when a:1 had " + ana.public_key().text() + " before"));
  EXPECT_FALSE(authority->may_stand_for("a:1", with(bob.public_key())));
  EXPECT_TRUE(authority->may_stand_for("a:1", with(ana.public_key())));
}

TEST_F(TheAuthority, a_line_of_the_keyring_alone_lets_no_key_stand_for_an_address) {
  self.cluster = {"c:1"};
  start(ana.line("run=none") + bob.line("run=any at=b:1"));
  const auto may = [&](const char* address, const Person& who) {
    return authority->may_stand_for(address, with(who.public_key()));
  };
  EXPECT_FALSE(may("a:1", ana) || may("b:1", ana) || may("c:1", ana));
  EXPECT_FALSE(may("a:1", bob) || may("c:1", bob));
  EXPECT_TRUE(may("b:1", bob));
  EXPECT_EQ(why_not("a:1", ana), "") << "it answered there, which is not its own word";
  EXPECT_TRUE(may("a:1", ana));
  EXPECT_FALSE(may("a:1", bob));
  for (const auto* const known : {"a:1", "b:1", "c:1"}) EXPECT_TRUE(authority->is_known(known)) << known;
  EXPECT_FALSE(authority->is_known("d:1"));
}

TEST_F(TheAuthority, a_key_of_the_keyring_is_remembered_at_the_address_without_a_warning) {
  start(ana.line() + bob.line());
  EXPECT_EQ(why_not("a:1", ana), "");
  EXPECT_THAT(why_not("a:1", bob), HasSubstr("ifunc key forget a:1")) << "each of them could be every node else";
  EXPECT_EQ(why_not("b:1", bob), "");
  EXPECT_THAT(logged(), AllOf(HasSubstr("first contact with a:1"), Not(HasSubstr("warning"))));
}

TEST_F(TheAuthority, a_node_answers_from_where_its_line_says) {
  start(ana.line("hosts=10.0.0.8"));
  EXPECT_THAT(why_not("a:1", ana), HasSubstr("hosts=10.0.0.8, and it is at 10.0.0.7"));
  start(ana.line("hosts=10.0.0.7"));
  EXPECT_EQ(why_not("a:1", ana), "");
}

TEST_F(TheAuthority, an_answer_goes_to_known_keys_alone_and_nothing_is_remembered_of_it) {
  config.first_contact = FirstContact::remember;
  start(bob.line());
  EXPECT_THAT(authority->is_expected("a:1", with(ana.public_key()), {.may_meet = false}).error().message,
              HasSubstr("an answer is no first contact"));
  EXPECT_TRUE(authority->is_expected("a:1", with(bob.public_key()), {.may_meet = false}));
  EXPECT_TRUE(authority->is_expected("a:1", with(own.public_key()), {.may_meet = false}));
  EXPECT_EQ(log.str(), "");
  EXPECT_FALSE(std::filesystem::exists(home.path() / "known-nodes"));
  EXPECT_EQ(why_not("a:1", ana), "") << "that was no contact";
  EXPECT_TRUE(authority->is_expected("a:1", with(ana.public_key()), {.may_meet = false}))
      << "and now it is known there";
  EXPECT_FALSE(authority->is_expected("a:1", with(bob.public_key()), {.may_meet = false}));
}

TEST_F(TheAuthority, a_launcher_vouches_for_a_key_at_one_address) {
  self.cluster = {"a:1", "b:1"};
  self.cluster_keys = {ana.public_key(), bob.public_key()};
  start();
  EXPECT_EQ(why_not("a:1", ana), "");
  EXPECT_THAT(why_not("a:1", bob), HasSubstr("the launcher gave " + ana.public_key().text()));
  EXPECT_FALSE(authority->may_stand_for("a:1", with(bob.public_key())));
  EXPECT_TRUE(authority->rights_of(with(ana.public_key())));
  EXPECT_EQ(log.str(), "") << "none of them is met for the first time";
}

TEST_F(TheAuthority, does_not_call_a_key_that_was_revoked) {
  self.cluster = {"a:1"};
  self.cluster_keys = {ana.public_key()};
  start(ana.line("revoked=2026-01-01"));
  EXPECT_THAT(why_not("a:1", ana), HasSubstr("the key was revoked"));
}

TEST_F(TheAuthority, does_not_call_a_key_from_the_second_on_in_which_it_expires) {
  const auto until = [](int64_t seconds_from_now) {
    return "until=" + trust::to_text(trust::Time{std::chrono::seconds{wall_clock_s() + seconds_from_now}});
  };
  const auto status = [&] { return authority->is_valid(with(ana.public_key())); };
  start(ana.line(until(60)));
  EXPECT_TRUE(status());
  start(ana.line(until(0)));
  ASSERT_FALSE(status());
  EXPECT_THAT(status().error().message, HasSubstr("the key expired at"));
  start(ana.line(until(-1)));
  EXPECT_FALSE(status());
  start(bob.line(until(0)));
  EXPECT_TRUE(status()) << "that is another key's line";
}

TEST_F(TheAuthority, its_own_key_may_be_anywhere) {
  start();
  EXPECT_TRUE(authority->is_expected("a:1", with(own.public_key())));
  EXPECT_TRUE(authority->may_stand_for("a:1", with(own.public_key())));
}

TEST_F(TheAuthority, nothing_is_sent_to_who_proves_nothing) {
  start();
  EXPECT_FALSE(authority->is_expected("a:1", transport::Origin{}));
}

TEST_F(TheAuthority, a_first_contact_that_cannot_be_written_down_lasts_for_this_process) {
  ::setenv("THREECHAINS_HOME", "/proc/nowhere", 1);
  config.keyring = "none";
  authority = std::make_unique<Authority>(config, self, logger);
  ASSERT_TRUE(authority->start());
  EXPECT_EQ(why_not("a:1", ana), "");
  EXPECT_NE(why_not("a:1", bob), "");
  EXPECT_THAT(logged(), HasSubstr("it is remembered until this process ends"));
}

TEST_F(TheAuthority, warns_of_networks_and_of_trust_any_when_it_starts) {
  config.trust = Trust::any;
  config.network.trusted_networks.push_back(AddressRange::parse("10.0.0.0/8").value());
  start();
  EXPECT_THAT(log.str(), HasSubstr("everybody who can reach this node's address may run any code"));
  EXPECT_THAT(log.str(), HasSubstr("trust-network 10.0.0.0/8"));
}

TEST_F(TheAuthority, uses_the_key_that_is_called_default) {
  start();
  EXPECT_EQ(authority->find_key().value(), nullptr);
  ASSERT_TRUE(trust::write_key_file(trust::key_path("default").value(), own));
  EXPECT_EQ(authority->find_key().value()->public_key(), own.public_key());
  config.key = "other";
  EXPECT_EQ(authority->find_key().error().code, TC_ERR_NOT_FOUND);
}

// ---- A keyring that cannot be read

TEST_F(TheAuthority, does_not_start_where_code_runs_and_the_keyring_is_wrong) {
  ASSERT_TRUE(write_file_atomically(home.path() / "keyring", as_bytes("nonsense\n")));
  authority = std::make_unique<Authority>(config, self, logger);
  const auto started = authority->start();
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("keyring, line 1"));
}

class WithoutAKeyring : public TheAuthority {
 protected:
  WithoutAKeyring() {
    config.code.use_objects = config.code.use_bitcode = false;
    self.cluster = {"b:1"};
    self.cluster_keys = {bob.public_key()};
    EXPECT_TRUE(trust::KnownNodes(home.path() / "known-nodes").remember("a:1", ana.public_key()));
    start(ana.line() + "nonsense\n");
  }
};

TEST_F(WithoutAKeyring, it_starts_where_no_code_runs_with_a_warning_of_the_line) {
  EXPECT_THAT(log.str(), AllOf(HasSubstr("warning"), HasSubstr("keyring, line 2"), HasSubstr("no key is trusted")));
}

TEST_F(WithoutAKeyring, no_key_is_trusted_because_it_might_be_revoked) {
  const auto other = Person("other");
  const auto because = HasSubstr((home.path() / "keyring").string() + ", line 2");
  EXPECT_THAT(why_not("a:1", ana), because) << "which was known there";
  EXPECT_THAT(why_not("b:1", bob), because) << "for which the launcher vouches";
  EXPECT_THAT(why_not("c:1", other), because) << "a first contact";
  EXPECT_THAT(authority->is_expected("a:1", with(ana.public_key()), {.may_meet = false}).error().message, because);
  EXPECT_THAT(authority->is_expected("c:1", with(own.public_key())).error().message, because);
  for (const auto& key : {ana.public_key(), bob.public_key(), own.public_key()}) {
    EXPECT_FALSE(authority->rights_of(with(key)));
    EXPECT_FALSE(authority->may_stand_for("a:1", with(key)));
  }
  EXPECT_FALSE(trust::KnownNodes(home.path() / "known-nodes").find("c:1")->has_value());
}

TEST_F(WithoutAKeyring, processes_of_our_own_user_are_trusted_as_ever) {
  transport::Origin origin;
  origin.same_user = true;
  EXPECT_TRUE(authority->is_expected("a:1", origin));
  EXPECT_TRUE(authority->rights_of(origin)->is_all());
}

TEST_F(WithoutAKeyring, one_that_can_be_read_later_is_taken_over) {
  ASSERT_TRUE(write_file_atomically(home.path() / "keyring", as_bytes(ana.line())));
  ASSERT_TRUE(authority->reload());
  EXPECT_TRUE(authority->has_changed());
  authority->take_change();
  EXPECT_EQ(why_not("a:1", ana), "");
}

TEST_F(TheAuthority, a_key_that_another_process_has_met_meanwhile_counts_and_ours_does_not) {
  start();
  const trust::KnownNodes file(home.path() / "known-nodes");
  {
    const auto lock = trust::FileLock::of(file.file()).value();
    EXPECT_EQ(why_not("a:1", ana), "");
    EXPECT_TRUE(write_file_atomically(file.file(), as_bytes("a:1 " + bob.public_key().text() + "\n")));
  }
  ASSERT_TRUE(tc::test::run_until([&] { return authority->has_changed(); }, std::this_thread::yield));
  EXPECT_EQ(authority->take_conflicts(), std::vector{ana.public_key()});
  EXPECT_FALSE(authority->has_changed());
  EXPECT_THAT(why_not("a:1", ana), HasSubstr("when a:1 had " + bob.public_key().text() + " before"));
  EXPECT_EQ(why_not("a:1", bob), "");
  EXPECT_THAT(logged(), AllOf(HasSubstr("error"), HasSubstr("meanwhile another process has met another key there")));
}

// ---- Reading it again

TEST_F(TheAuthority, warns_of_what_another_keyring_changes) {
  start(ana.line() + bob.line());
  const Person eve{"eve"};
  ASSERT_TRUE(write_file_atomically(home.path() / "keyring", as_bytes(ana.line("rate=7") + eve.line())));
  ASSERT_TRUE(authority->reload());
  EXPECT_EQ(authority->take_change(), std::vector{bob.public_key()});
  EXPECT_THAT(log.str(), AllOf(HasSubstr("warning"),
                               HasSubstr("the keyring was read again: 2 keys; new: eve; gone: bob; changed: ana")));
  log.str("");
  ASSERT_TRUE(authority->reload());
  EXPECT_TRUE(authority->take_change().empty());
  EXPECT_THAT(log.str(), HasSubstr("the keyring was read again: 2 keys; nothing changed"));
  log.str("");
  EXPECT_TRUE(authority->take_change().empty());
  EXPECT_EQ(log.str(), "") << "a line that expires is no reload";
}

// ---- Keys that were met for the first time

class TheFirstContacts : public testing::Test {
 protected:
  void remember(const std::string& address, const Person& who) {
    contacts->remember(address, who.public_key(),
                       [this](const Status& kept) { results.push_back(kept ? "kept" : kept.error().message); });
  }
  // What became of each key.
  const std::vector<std::string>& at_the_end() {
    contacts.reset();
    return results;
  }
  std::optional<trust::PublicKey> known(const std::string& address) const { return contacts->find(address).value(); }

  TemporaryDirectory home = TemporaryDirectory::create().value();
  const trust::KnownNodes file{home.path() / "known-nodes"};
  Person ana{"ana"}, bob{"bob"};
  std::vector<std::string> results;  // of the thread that writes
  std::unique_ptr<FirstContacts> contacts = std::make_unique<FirstContacts>(file);
};

TEST_F(TheFirstContacts, know_a_key_at_once_and_write_it_without_anybody_who_waits) {
  {
    const auto held = trust::FileLock::of(file.file()).value();  // nobody can write meanwhile
    remember("a:1", ana);
    remember("b:1", bob);
    EXPECT_EQ(known("a:1"), ana.public_key());
    EXPECT_EQ(known("b:1"), bob.public_key());
    EXPECT_EQ(known("c:1"), std::nullopt);
    EXPECT_EQ(file.find("a:1").value(), std::nullopt);
  }
  EXPECT_THAT(at_the_end(), ElementsAre("kept", "kept"));
  EXPECT_EQ(file.find("a:1").value(), ana.public_key());
  EXPECT_EQ(file.find("b:1").value(), bob.public_key());
}

TEST_F(TheFirstContacts, find_what_other_processes_have_written_and_what_was_there) {
  EXPECT_TRUE(file.remember("a:1", ana.public_key()));
  EXPECT_EQ(known("a:1"), ana.public_key());
  EXPECT_TRUE(file.forget("a:1").value());
  EXPECT_EQ(known("a:1"), std::nullopt);
}

TEST_F(TheFirstContacts, a_key_that_is_written_can_be_forgotten_while_the_node_runs) {
  remember("a:1", ana);
  ASSERT_TRUE(
      tc::test::run_until([&] { return file.find("a:1").value() == ana.public_key(); }, std::this_thread::yield));
  EXPECT_TRUE(file.forget("a:1").value());
  EXPECT_TRUE(tc::test::run_until([&] { return !known("a:1"); }, std::this_thread::yield));
  EXPECT_FALSE(contacts->has_conflicts());
}

TEST_F(TheFirstContacts, another_key_that_is_in_the_file_meanwhile_counts) {
  EXPECT_TRUE(file.remember("a:1", bob.public_key()));
  remember("a:1", ana);
  ASSERT_TRUE(tc::test::run_until([&] { return contacts->has_conflicts(); }, std::this_thread::yield));
  EXPECT_THAT(contacts->take_conflicts(), ElementsAre(ana.public_key()));
  EXPECT_FALSE(contacts->has_conflicts());
  EXPECT_TRUE(contacts->take_conflicts().empty());
  EXPECT_EQ(known("a:1"), bob.public_key());
  EXPECT_THAT(at_the_end(), ElementsAre(HasSubstr("for a:1, and not " + ana.public_key().text())));
}

TEST_F(TheFirstContacts, a_key_that_cannot_be_written_is_known_as_long_as_the_process_lives) {
  EXPECT_TRUE(write_file_atomically(file.file(), as_bytes("nonsense\n")));
  remember("a:1", ana);
  EXPECT_EQ(known("a:1"), ana.public_key());
  EXPECT_FALSE(contacts->has_conflicts());
  EXPECT_THAT(at_the_end(), ElementsAre(HasSubstr("known-nodes, line 1")));
}

TEST_F(TheFirstContacts, without_a_place_for_the_file_are_known_as_long_as_the_process_lives) {
  contacts = std::make_unique<FirstContacts>(std::nullopt);
  remember("a:1", ana);
  EXPECT_THAT(results, ElementsAre("neither THREECHAINS_HOME nor HOME is set"));
  EXPECT_EQ(known("a:1"), ana.public_key());
  EXPECT_EQ(known("b:1"), std::nullopt);
}

// ---- When keys were last used: what a node writes down of it

bool run_until(const std::function<bool()>& done) {
  for (const auto deadline = Deadline::after_ms(20'000); !deadline.passed(); std::this_thread::sleep_for(5ms))
    if (done()) return true;
  return false;
}

class AUseRecorder : public testing::Test {
 protected:
  trust::UseTimes written() const { return trust::LastUses(file).read().value(); }
  static trust::Time at(unsigned second) { return trust::Time{std::chrono::seconds{1'700'000'000 + second}}; }
  TemporaryDirectory home = TemporaryDirectory::create().value();
  std::filesystem::path file = home.path() / "last-uses";
  Person ana{"ana"}, bob{"bob"};
  std::vector<std::string> reports;
  UseRecorder::Report report = [this](const std::string& why) { reports.push_back(why); };
};

TEST_F(AUseRecorder, writes_the_first_use_at_once_and_the_next_ones_with_its_end) {
  {
    UseRecorder recorder(file, report);
    recorder.record(ana.public_key(), at(1));
    ASSERT_TRUE(run_until([&] { return !written().empty(); }));
    recorder.record(ana.public_key(), at(2));
    recorder.record(bob.public_key(), at(3));
    std::this_thread::sleep_for(50ms);
    EXPECT_EQ(written(), (trust::UseTimes{{ana.public_key(), at(1)}})) << "a minute has not passed";
  }
  EXPECT_EQ(written(), (trust::UseTimes{{ana.public_key(), at(2)}, {bob.public_key(), at(3)}}));
  EXPECT_TRUE(reports.empty());
}

TEST_F(AUseRecorder, writes_what_came_meanwhile_after_its_pause) {
  UseRecorder recorder(file, report, 20ms);
  for (unsigned second = 1; second < 4; ++second) {
    recorder.record(ana.public_key(), at(second));
    EXPECT_TRUE(run_until([&] { return written() == trust::UseTimes{{ana.public_key(), at(second)}}; }));
  }
}

TEST_F(AUseRecorder, without_a_use_writes_nothing) {
  {
    const UseRecorder recorder(file, report);
  }
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(AUseRecorder, says_once_that_it_cannot_write) {
  {
    UseRecorder recorder("/proc/nowhere/last-uses", report, 1ms);
    for (unsigned second = 1; second < 4; ++second) {
      recorder.record(ana.public_key(), at(second));
      std::this_thread::sleep_for(20ms);
    }
  }
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_THAT(reports.front(), HasSubstr("/proc/nowhere"));
}

// ---- Of a node

class UsesOfKeys : public WithKeyring {
 protected:
  // What the file has when the node is gone.
  trust::UseTimes written() {
    running.reset();
    target.reset();
    return trust::LastUses(file()).read().value();
  }
  std::filesystem::path file() const { return net.home.path() / "last-uses"; }
};

TEST_F(UsesOfKeys, a_peers_key_and_the_key_that_signed_its_code_are_written_down) {
  start(ana.line() + bob.line() + eve.line());
  const auto began = trust::Time{std::chrono::seconds{wall_clock_s()}};
  EXPECT_EQ(call(*peer(2, bob), ana.signs(echo))->status, TC_OK);
  const auto uses = written();
  EXPECT_THAT(uses, UnorderedElementsAre(Key(ana.public_key()), Key(bob.public_key())));
  for (const auto& [key, time] : uses) EXPECT_GE(time, began);
  struct stat info{};
  ASSERT_EQ(::stat(file().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(UsesOfKeys, who_is_refused_or_needs_no_key_is_not_written_down) {
  start(ana.line("revoked=2026-01-01") + bob.line("run=any"));
  EXPECT_EQ(call(*own_peer(2), ana.signs(echo))->status, TC_OK);
  const auto client = peer(3, ana);
  EXPECT_FALSE(client->connect("n1", Deadline::after_ms(2000)));
  EXPECT_TRUE(written().empty());
}

TEST_F(UsesOfKeys, a_link_that_stays_open_is_a_use_each_minute) {
  start(ana.line("run=any"));
  const auto client = peer(2, ana);
  auto* const link = test::connect(*client, "n1");
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  running.reset();
  const auto before = trust::Time{std::chrono::seconds{wall_clock_s()}};
  test::let_pass(3600s);
  run();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  EXPECT_FALSE(link->is_lost());
  const auto uses = written();
  ASSERT_TRUE(uses.contains(ana.public_key()));
  EXPECT_GE(uses.at(ana.public_key()), before + 3600s);
}

TEST_F(UsesOfKeys, a_node_that_runs_no_code_writes_nothing_down) {
  start(ana.line("run=any"), [](Config& config) { config.code.use_objects = config.code.use_bitcode = false; });
  const auto client = peer(2, ana);
  test::connect(*client, "n1");
  written();
  EXPECT_FALSE(std::filesystem::exists(file()));
}

}  // namespace
}  // namespace tc::node::test
