// SPDX-License-Identifier: Apache-2.0
//
// What a node makes of its bootstrap's options.
#include "node/bootstrap/bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <future>

#include "base/file.h"
#include "node/node.h"
#include "transport/testing/simulated/simulated.h"
#include "trust/key_file.h"

namespace tc::node {
namespace {

using testing::HasSubstr;

using Settings = std::vector<std::pair<const char*, std::string>>;

class Bootstrapping : public testing::Test {
 protected:
  // A user without any key.
  Bootstrapping() { ::setenv("THREECHAINS_HOME", temporary_.file("home").c_str(), 1); }
  Result<std::unique_ptr<Node>> make(const std::string& listen, const Settings& settings) {
    auto config = Config::defaults();
    config.log = "off";
    config.listen = listen;
    for (const auto& [key, value] : settings) TC_CHECK(config.set(key, value));
    return Node::create(std::move(config), [this](const Config&, transport::Events& events) {
      return Result<std::unique_ptr<transport::Transport>>(network_.join(events));
    });
  }
  Error refusal(const Settings& settings, const std::string& listen = "here") {
    const auto node = make(listen, settings);
    EXPECT_FALSE(node) << "it must be refused";
    return node ? Error{} : node.error();
  }
  std::string dir() const { return "dir:" + directory_; }

  const TemporaryDirectory temporary_ = TemporaryDirectory::create().value();
  const std::string directory_ = temporary_.file("rendezvous");
  transport::SimulatedNetwork network_;
};

TEST_F(Bootstrapping, gives_a_node_its_number_and_everybodys_address) {
  auto other = std::async(std::launch::async, [&] { return make("b", {{"bootstrap", dir()}, {"nodes", "2"}}); });
  const auto node = make("a", {{"bootstrap", dir()}, {"nodes", "2"}});
  const auto second = other.get();
  ASSERT_TRUE(node) << node.error().message;
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ((*node)->node_id() + (*second)->node_id(), 1u);
  EXPECT_EQ((*node)->node_count(), 2u);
  EXPECT_EQ((*node)->address_of((*node)->node_id()), "a");
  EXPECT_EQ((*node)->address_of((*second)->node_id()), "b");
  EXPECT_EQ((*node)->address_of(2), "");
  EXPECT_EQ((*node)->identity().cluster_keys, (*second)->identity().cluster_keys);
  ASSERT_EQ((*node)->identity().cluster_keys.size(), 2u);
  EXPECT_NE((*node)->identity().cluster_keys[0], (*node)->identity().cluster_keys[1]) << "each has its own";
  EXPECT_EQ((*node)->identity().cluster_keys[(*node)->node_id()], (*node)->config().network.key->public_key());
  EXPECT_EQ((*node)->identity().wire_id(), (*node)->node_id()) << "also number 0, in a cluster";
  EXPECT_THAT((*node)->identity().label, HasSubstr(fmt::format("node {} (", (*node)->node_id())));
  EXPECT_EQ((*node)->stat("links"), 0u) << "addresses only: nobody connects";
}

TEST_F(Bootstrapping, uses_the_users_own_key_if_there_is_one) {
  const auto own = trust::KeyPair::fresh().value();
  ASSERT_TRUE(trust::write_key_file(trust::key_path(trust::default_key).value(), own));
  const auto node = make("a", {{"bootstrap", dir()}, {"nodes", "1"}});
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ((*node)->identity().cluster_keys, std::vector{own.public_key()});
}

TEST_F(Bootstrapping, in_a_directory_that_others_can_write_to_is_refused) {
  std::filesystem::create_directory(directory_);
  std::filesystem::permissions(directory_, std::filesystem::perms(0777));
  const auto error = refusal({{"bootstrap", dir()}, {"nodes", "1"}});
  EXPECT_EQ(error.code, TC_ERR_DENIED);
  EXPECT_THAT(error.message, HasSubstr("chmod 700"));
}

TEST_F(Bootstrapping, leaves_nothing_behind_when_the_node_ends) {
  {
    ASSERT_TRUE(make("a", {{"bootstrap", dir()}, {"nodes", "1"}}));
  }
  EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(Bootstrapping, refuses_options_that_do_not_go_together) {
  EXPECT_THAT(refusal({{"bootstrap", dir()}}).message, HasSubstr("set nodes"));
  EXPECT_THAT(refusal({{"bootstrap", dir()}, {"nodes", "2"}, {"cluster", "a,b"}}).message,
              HasSubstr("both cluster and bootstrap"));
  EXPECT_THAT(refusal({{"bootstrap", "auto"}, {"cluster", "a,b"}}).message, HasSubstr("both cluster and bootstrap"));
  EXPECT_THAT(refusal({{"bootstrap", dir()}, {"nodes", "2"}}, "").message, HasSubstr("listen is none"));
  EXPECT_THAT(refusal({{"bootstrap", dir()}, {"nodes", "2"}, {"id", "2"}}).message,
              HasSubstr("id 2 when there are nodes 0 to 1"));
}

TEST_F(Bootstrapping, says_which_kinds_there_are) {
  for (const char* kind : {"mpi", "dir:", "", "dir"})
    EXPECT_THAT(refusal({{"bootstrap", kind}}).message, HasSubstr("none, auto, pmix or dir:PATH")) << kind;
}

TEST_F(Bootstrapping, by_pmix_needs_a_launcher_and_auto_does_without) {
  if (bootstrap::launched_by_pmix()) GTEST_SKIP() << "a PMIx launcher started this test";
  const auto error = refusal({{"bootstrap", "pmix"}});
  EXPECT_EQ(error.code, TC_ERR_INVALID);
  EXPECT_THAT(error.message, HasSubstr("no PMIx launcher started this process"));
  const auto node = make("a", {{"bootstrap", "auto"}});
  ASSERT_TRUE(node) << node.error().message;
  EXPECT_EQ((*node)->node_count(), 1u);
}

TEST_F(Bootstrapping, by_pmix_names_the_plug_in_that_is_missing) {
  if (bootstrap::launched_by_pmix()) GTEST_SKIP() << "a PMIx launcher started this test";
  ::setenv("PMIX_NAMESPACE", "none", 1);
  ::setenv("PMIX_RANK", "0", 1);
  const auto error = refusal({{"bootstrap", "pmix"}, {"pmix-plugin", "/no/such/plugin.so"}});
  ::unsetenv("PMIX_NAMESPACE");
  ::unsetenv("PMIX_RANK");
  EXPECT_EQ(error.code, TC_ERR_UNSUPPORTED);
  EXPECT_THAT(error.message, HasSubstr("/no/such/plugin.so"));
}

TEST(BootstrapNames, of_nodes_are_a_list_that_ends) {
  using bootstrap::name_nodes;
  EXPECT_EQ(name_nodes({5}), "node 5");
  EXPECT_EQ(name_nodes({5, 7}), "nodes 5 and 7");
  EXPECT_EQ(name_nodes({1, 2, 3}), "nodes 1, 2 and 3");
  std::vector<uint32_t> many(100);
  for (uint32_t i = 0; i < 100; ++i) many[i] = i;
  EXPECT_EQ(name_nodes(many), "nodes 0, 1, 2, 3, 4, 5, 6, 7 and 92 more");
}

}  // namespace
}  // namespace tc::node
