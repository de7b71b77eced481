// SPDX-License-Identifier: Apache-2.0
//
// When keys were last used: what a node writes down of it.
#include "node/use_recorder.h"

#include <sys/stat.h>

#include "node/testing/keyring_kit.h"

namespace tc::node {
namespace {

using testing::HasSubstr;
using testing::Key;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

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
  test::Person ana{"ana"}, bob{"bob"};
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

class UsesOfKeys : public test::WithKeyring {
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
}  // namespace tc::node
