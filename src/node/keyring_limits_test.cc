// SPDX-License-Identifier: Apache-2.0
//
// What a line of the keyring bounds: bytes of code, messages a second, and time. And what happens when it is changed.
#include <time.h>

#include "base/clock.h"
#include "node/testing/keyring_kit.h"
#include "trust/private_file.h"

namespace tc::node::test {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class KeyringLimits : public WithKeyring {
 protected:
  // Echo under other names: each is code of its own.
  Bundle numbered(unsigned number) { return renamed(echo, "echo" + std::to_string(number)); }
  size_t bytes_of_one() {
    const auto node = net.make(50), client = net.make(51);
    auto driven = std::make_unique<Background>(*node);
    EXPECT_EQ(test::call(*client, *test::connect(*client, "n50"), *test::message(*client, numbered(0), "x"))->status,
              TC_OK);
    driven.reset();
    return node->store().find(numbered(0).id())->bytes;
  }
  static std::string in_seconds(int64_t seconds) {
    return trust::to_text(trust::Time{std::chrono::seconds{wall_clock_s() + seconds}});
  }
  // Not while the target reads both clocks, one after the other.
  void let_pass(std::chrono::seconds time) {
    running.reset();
    test::let_pass(time);
    run();
  }
  bool ends(Node& node, Link& link, uint32_t ms) {
    return node.poll_until(Deadline::after_ms(ms), [&] { return link.is_lost(); });
  }
};

// ---- code=BYTES

TEST_F(KeyringLimits, the_code_that_a_key_used_longest_ago_goes_first) {
  const auto each = bytes_of_one();
  start(ana.line("run=any code=" + std::to_string(2 * each + each / 2)) + bob.line("run=any"));
  const auto client = peer(2, ana);
  EXPECT_EQ(call(*peer(3, bob), numbered(9))->status, TC_OK);
  for (unsigned number : {1u, 2u, 1u, 3u}) EXPECT_EQ(call(*client, numbered(number))->status, TC_OK);
  running.reset();
  EXPECT_NE(target->store().find(numbered(1).id()), nullptr);
  EXPECT_EQ(target->store().find(numbered(2).id()), nullptr);
  EXPECT_NE(target->store().find(numbered(3).id()), nullptr);
  EXPECT_NE(target->store().find(numbered(9).id()), nullptr) << "others' code is not touched";
}

TEST_F(KeyringLimits, code_that_alone_takes_more_is_refused) {
  start(ana.line("run=any code=200"));
  const auto future = call(*peer(2, ana), echo);
  EXPECT_EQ(future->status, TC_ERR_LIMIT);
  EXPECT_THAT(future->message, HasSubstr("when ana (keyring, line 1) may keep 200 bytes of code here: code=200"));
  EXPECT_EQ(stat("codes"), 0u);
}

TEST_F(KeyringLimits, code_that_takes_more_once_it_is_linked_is_refused) {
  start(ana.line("run=any code=" + std::to_string(bytes_of_one() - 1)));
  const auto future = call(*peer(2, ana), numbered(1));
  EXPECT_EQ(future->status, TC_ERR_LIMIT) << future->message;
  EXPECT_EQ(stat("codes"), 0u);
}

// ---- rate=NUMBER

TEST_F(KeyringLimits, messages_beyond_the_rate_wait_and_none_is_lost) {
  start(ana.line("run=any rate=100"));
  const auto client = peer(2, ana);
  auto* const link = test::connect(*client, "n1");
  const auto message = test::message(*client, echo);
  EXPECT_EQ(test::call(*client, *link, *message)->status, TC_OK);
  const auto began = now_ns();
  std::vector<std::shared_ptr<Future>> futures;
  for (int i = 0; i < 60; ++i)
    futures.push_back(client->call(*link, *message, 20'000, Deadline::after_ms(20'000)).value());
  ASSERT_TRUE(client->poll_until(Deadline::after_ms(20'000), [&] { return all_ready(futures); }));
  EXPECT_GE(now_ns() - began, 450'000'000u) << "60 messages, of which 10 may come at once";
  for (const auto& future : futures) EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_GE(stat("throttled"), 1u);
}

TEST_F(KeyringLimits, what_a_peer_that_is_gone_sent_beyond_its_rate_is_dropped_and_the_log_says_how_much) {
  constexpr int sent = 50;
  start(ana.line("run=any rate=1"));
  auto client = peer(2, ana);
  auto* const link = test::connect(*client, "n1");
  const auto message = test::message(*client, echo);
  EXPECT_EQ(test::call(*client, *link, *message)->status, TC_OK);
  running.reset();
  const auto before = target->stat("executed").value();
  const StoppedClock stopped;
  for (int i = 0; i < sent; ++i) ASSERT_TRUE(client->send(*link, *message, false, Deadline::after_ms(100)));
  client.reset();
  for (int seconds = 0; seconds < sent && target->links().size() != 0; ++seconds) {
    test::let_pass(1s);
    for (int polls = 0; polls < 20; ++polls) target->poll();
  }
  const auto ran = [&] { return target->stat("executed").value() - before; };
  // Calls may still run on other threads, which keep the link.
  const auto is_told = [&] {
    return target->links().size() == 0 &&
           logged().contains(fmt::format("what node 2 (test2) sent beyond its rate is not run, as it is gone: {} calls",
                                         sent - ran()));
  };
  EXPECT_TRUE(tc::test::run_until(is_told, [&] { target->poll(); })) << ran() << " ran; " << logged();
  EXPECT_LE(ran(), 10u);
}

TEST_F(KeyringLimits, all_links_of_a_key_share_its_rate) {
  start(ana.line("run=any rate=50"));
  const auto one = peer(2, ana), other = peer(3, ana);
  std::vector<std::shared_ptr<Future>> futures;
  const auto began = now_ns();
  for (const auto& client : {one.get(), other.get()}) {
    auto* const link = test::connect(*client, "n1");
    const auto message = test::message(*client, echo);
    for (int i = 0; i < 15; ++i)
      futures.push_back(client->call(*link, *message, 20'000, Deadline::after_ms(20'000)).value());
  }
  const auto all_done = [&] { return other->poll(), all_ready(futures); };
  ASSERT_TRUE(one->poll_until(Deadline::after_ms(20'000), all_done));
  EXPECT_GE(now_ns() - began, 400'000'000u) << "30 messages, of which 5 may come at once";
}

TEST_F(KeyringLimits, a_node_sleeps_while_a_peer_waits_for_its_rate) {
  const auto began = now_ns();
  start(ana.line("run=any rate=1"));
  const auto client = peer(2, ana);
  auto* const link = test::connect(*client, "n1");
  const auto message = test::message(*client, echo);
  EXPECT_EQ(test::call(*client, *link, *message)->status, TC_OK);
  running.reset();
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(client->send(*link, *message, false, Deadline::after_ms(100)));
  for (int i = 0; i < 20; ++i) client->poll();
  const auto cpu_ns = [] {
    timespec time;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
  };
  const auto before = cpu_ns();
  for (const auto deadline = Deadline::after_ms(500); !deadline.passed();) target->wait(deadline);
  EXPECT_LT(cpu_ns() - before, 100'000'000u);
  EXPECT_LE(target->stat("executed").value(), 3 + (now_ns() - began) / 1'000'000'000);
  EXPECT_GE(target->stat("throttled").value(), 1u);
}

// ---- until=TIME

TEST_F(KeyringLimits, a_link_ends_when_its_key_expires) {
  start(ana.line("run=any until=" + in_seconds(1000)));
  const auto client = peer(2, ana);
  auto* const link = test::connect(*client, "n1");
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  let_pass(500s);
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  EXPECT_FALSE(link->is_lost());
  let_pass(500s);
  ASSERT_TRUE(ends(*client, *link, 20'000));
  EXPECT_THAT(link->reason().message, HasSubstr("line 1 (ana): the key expired at"));
}

TEST_F(KeyringLimits, code_stops_running_when_its_authors_key_expires) {
  start(ana.line("until=" + in_seconds(1000)) + bob.line());
  const auto client = peer(2, bob);
  const auto signed_echo = ana.signs(echo);
  let_pass(500s);
  const auto before = call(*client, signed_echo);
  EXPECT_EQ(before->status, TC_OK) << before->message;
  let_pass(500s);
  expect_denied(*call(*client, signed_echo), "line 1 (ana): the key expired");
}

// ---- Reading it anew

TEST_F(KeyringLimits, a_revoked_keys_link_ends_while_the_node_is_idle) {
  start(ana.line("run=any"));
  const auto client = peer(2, ana);
  auto* const link = test::connect(*client, "n1");
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  write_keyring(ana.line("run=any revoked=2026-01-01"));
  ASSERT_TRUE(target->reload_keys());
  ASSERT_TRUE(ends(*client, *link, 20'000));
  EXPECT_THAT(link->reason().message, HasSubstr("line 1 (ana): the key was revoked at 2026-01-01"));
  EXPECT_TRUE(wait_for_log("dropped: keyring, line 1 (ana): the key was revoked"));
  EXPECT_EQ(stat("codes"), 0u) << "what it brought is gone";
}

TEST_F(KeyringLimits, a_link_ends_when_its_line_is_gone) {
  start(ana.line("run=any"));
  const auto client = peer(2, ana);
  auto* const link = test::connect(*client, "n1");
  write_keyring(bob.line());
  ASSERT_TRUE(target->reload_keys());
  ASSERT_TRUE(ends(*client, *link, 20'000));
  EXPECT_THAT(link->reason().message, HasSubstr(ana.public_key().text() + " is in no line of the keyring"));
}

TEST_F(KeyringLimits, our_own_link_to_a_node_ends_with_its_line) {
  start(ana.line("run=any") + bob.line());
  const auto other = peer(2, ana), third = peer(3, bob);
  const Background run_other(*other), run_third(*third);
  running.reset();
  auto* const link = test::connect(*target, "n2");
  auto* const stays = test::connect(*target, "n3");
  const Link::Hold hold(*link), hold_other(*stays);
  write_keyring(bob.line());
  ASSERT_TRUE(target->reload_keys());
  ASSERT_TRUE(ends(*target, *link, 20'000));
  EXPECT_THAT(link->reason().message, HasSubstr(ana.public_key().text() + " is in no line of the keyring"));
  EXPECT_FALSE(stays->is_lost());
}

TEST_F(KeyringLimits, our_own_link_ends_when_another_process_has_met_another_key_there) {
  start(ana.line() + bob.line());
  const auto other = peer(2, ana);
  const Background run_other(*other);
  running.reset();
  const auto file = net.home.path() / "known-nodes";
  auto lock = std::optional(trust::FileLock::of(file).value());
  auto* const link = test::connect(*target, "n2");
  const Link::Hold hold(*link);
  EXPECT_TRUE(write_file_atomically(file, as_bytes("n2 " + bob.public_key().text() + "\n")));
  lock.reset();
  ASSERT_TRUE(ends(*target, *link, 20'000));
  EXPECT_THAT(link->reason().message, HasSubstr("when n2 had " + bob.public_key().text() + " before"));
}

TEST_F(KeyringLimits, what_a_key_brought_goes_with_its_line) {
  start(ana.line("run=any") + bob.line("run=any"));
  const auto client = peer(2, ana);
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  EXPECT_EQ(call(*peer(3, bob), numbered(1))->status, TC_OK);
  reload(bob.line("run=any"));
  EXPECT_TRUE(wait_for_log("the keyring was read again: 1 key; gone: ana"));
  running.reset();
  EXPECT_EQ(target->store().find(echo.id()), nullptr);
  EXPECT_NE(target->store().find(numbered(1).id()), nullptr) << "others' code is not touched";
}

TEST_F(KeyringLimits, what_a_key_signed_goes_with_its_line_and_does_not_run_again) {
  start(ana.line() + bob.line());
  const auto client = peer(2, bob);
  const auto signed_echo = ana.signs(echo);
  EXPECT_EQ(call(*client, signed_echo)->status, TC_OK);
  EXPECT_EQ(call(*client, bob.signs(numbered(1)))->status, TC_OK);
  reload(bob.line());
  running.reset();
  EXPECT_EQ(target->store().find(signed_echo.id()), nullptr);
  run();
  expect_denied(*call(*client, signed_echo), "has no signature of a key in the keyring");
  EXPECT_EQ(call(*client, bob.signs(numbered(1)))->status, TC_OK);
  EXPECT_EQ(stat("codes"), 1u);
}

TEST_F(KeyringLimits, a_key_that_its_line_was_given_another_for_loses_what_it_had) {
  start(ana.line("run=any"));
  const auto client = peer(2, ana);
  auto* const link = test::connect(*client, "n1");
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  write_keyring("ana " + bob.public_key().text() + " run=any\n");
  ASSERT_TRUE(target->reload_keys());
  ASSERT_TRUE(ends(*client, *link, 20'000));
  EXPECT_TRUE(wait_for_log("the keyring was read again: 1 key; changed: ana"));
  EXPECT_EQ(stat("codes"), 0u);
}

TEST_F(KeyringLimits, what_a_revoked_key_signed_goes_and_does_not_run_again) {
  start(ana.line() + bob.line());
  const auto client = peer(2, bob);
  const auto signed_echo = ana.signs(echo);
  EXPECT_EQ(call(*client, signed_echo)->status, TC_OK);
  EXPECT_EQ(call(*client, bob.signs(numbered(1)))->status, TC_OK);
  reload(ana.line("revoked=2026-01-01") + bob.line());
  expect_denied(*call(*client, signed_echo), "line 1 (ana): the key was revoked");
  EXPECT_EQ(call(*client, bob.signs(numbered(1)))->status, TC_OK);
  EXPECT_EQ(stat("codes"), 1u);
}

TEST_F(KeyringLimits, a_line_that_was_made_narrower_counts_from_the_next_call_on) {
  start(ana.line("run=any"));
  const auto client = peer(2, ana);
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  reload(ana.line());
  expect_denied(*call(*client, echo), "has no signature of a key in the keyring");
  reload(ana.line("run=any"));
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
}

TEST_F(KeyringLimits, a_bad_keyring_changes_nothing) {
  start(ana.line("run=any"));
  const auto client = peer(2, ana);
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
  write_keyring(bob.line() + "nonsense\n");
  const auto reloaded = target->reload_keys();
  ASSERT_FALSE(reloaded);
  EXPECT_EQ(reloaded.error().code, TC_ERR_INVALID);
  EXPECT_THAT(reloaded.error().message, HasSubstr("line 2"));
  EXPECT_TRUE(wait_for_log("the keyring stays as it was"));
  EXPECT_EQ(call(*client, echo)->status, TC_OK);
}

TEST_F(KeyringLimits, a_node_does_not_start_with_a_bad_keyring) {
  write_keyring("nonsense\n");
  auto config = Config::defaults();
  config.log = "off";
  const auto node = Node::create(std::move(config), [this](const Config&, transport::Events& events) {
    return Result<std::unique_ptr<transport::Transport>>(net.network.join(events));
  });
  ASSERT_FALSE(node);
  EXPECT_EQ(node.error().code, TC_ERR_INVALID);
}

}  // namespace
}  // namespace tc::node::test
