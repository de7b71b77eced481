// SPDX-License-Identifier: Apache-2.0
#include "node/first_contacts.h"

#include "node/testing/keyring_kit.h"
#include "trust/private_file.h"

namespace tc::node {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TheFirstContacts : public testing::Test {
 protected:
  void remember(const std::string& address, const test::Person& who) {
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
  test::Person ana{"ana"}, bob{"bob"};
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

}  // namespace
}  // namespace tc::node
