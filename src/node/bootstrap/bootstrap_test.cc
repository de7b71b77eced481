// SPDX-License-Identifier: Apache-2.0
//
// How a node that starts finds its number and its peers. directory_test.cc has how they meet in a directory.
#include "node/bootstrap/bootstrap.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <future>

#include "base/file.h"
#include "node/bootstrap/advertise.h"
#include "node/bootstrap/record.h"
#include "node/node.h"
#include "transport/testing/simulated/simulated.h"
#include "trust/key_file.h"

namespace tc::node::bootstrap {
namespace {

// ---- What a node writes about itself

// RFC 8032, 7.1, test 1: a key that is fixed, as text.
constexpr std::string_view key_text = "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";

const Record sample{.informed = false,
                    .id = 3,
                    .count = 8,
                    .host = "north",
                    .address = "10.0.0.4:41234",
                    .key = trust::PublicKey::parse(key_text).value()};

TEST(BootstrapRecord, is_one_line_that_people_can_read) {
  EXPECT_EQ(encode(sample),
            "threechains-node 2 w 3 of 8 on north at 10.0.0.4:41234 key "
            "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\n");
}

TEST(BootstrapRecord, reads_back_what_was_written) {
  for (const bool informed : {false, true}) {
    auto wanted = sample;
    wanted.informed = informed;
    const auto got = decode(encode(wanted));
    ASSERT_TRUE(got) << got.error().message;
    EXPECT_EQ(got->informed, informed);
    EXPECT_EQ(got->id, 3u);
    EXPECT_EQ(got->count, 8u);
    EXPECT_EQ(got->host, "north");
    EXPECT_EQ(got->address, "10.0.0.4:41234");
    EXPECT_EQ(got->key.text(), key_text);
  }
}

TEST(BootstrapRecord, becomes_informed_by_one_byte) {
  auto text = encode(sample);
  text[informed_offset] = informed_mark;
  const auto got = decode(text);
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_TRUE(got->informed);
}

TEST(BootstrapRecord, that_is_cut_off_anywhere_is_refused) {
  const auto text = encode(sample);
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(decode(text.substr(0, size))) << size;
}

TEST(BootstrapRecord, with_numbers_or_addresses_that_make_no_sense_is_refused) {
  const auto line = [](const char* id, const char* count, const std::string& address) {
    return fmt::format("threechains-node 2 w {} of {} on north at {} key {}\n", id, count, address, key_text);
  };
  ASSERT_TRUE(decode(line("3", "8", "a:1")));
  for (const char* id : {"8", "-1", "3x", "4294967299", "+3"}) EXPECT_FALSE(decode(line(id, "8", "a:1"))) << id;
  for (const char* count : {"0", "65537", "99999999999"}) EXPECT_FALSE(decode(line("3", count, "a:1"))) << count;
  for (const char* address : {"", "a:1,b:2", "a b", "a\tb", "\x80:1"})
    EXPECT_FALSE(decode(line("3", "8", address))) << address;
  EXPECT_FALSE(decode(line("3", "8", std::string(256, 'a'))));
  EXPECT_FALSE(decode(line("3", "8", std::string(5000, 'a'))));
  EXPECT_FALSE(decode(line("3", "8", std::string("a\0b", 3))));
}

TEST(BootstrapRecord, with_another_word_in_the_place_of_one_of_its_own_is_refused) {
  const std::vector<std::string> words{
      "w", "3", "of", "8", "on", "north", "at", "10.0.0.4:41234", "key", std::string(key_text)};
  const auto line = [](const std::vector<std::string>& all) {
    return fmt::format("threechains-node 2 {}\n", fmt::join(all, " "));
  };
  ASSERT_EQ(line(words), encode(sample));
  for (const size_t place : {0u, 1u, 2u, 3u, 4u, 6u, 8u})
    for (const char* other : {"x", "W", "I", "o", "ofs", "keys", "3.", "0x3"}) {
      auto changed = words;
      changed[place] = other;
      const auto got = decode(line(changed));
      ASSERT_FALSE(got) << line(changed);
      EXPECT_EQ(got.error().code, TC_ERR_MALFORMED) << line(changed);
      EXPECT_NE(got.error().message.find("only begin like"), std::string::npos) << got.error().message;
    }
}

TEST(BootstrapRecord, with_another_beginning_is_no_record_at_all) {
  for (const char* beginning : {"", "threechains-nodE ", " threechains-node ", "threechains-node"}) {
    const auto got = decode(beginning + encode(sample).substr(std::string_view("threechains-node ").size()));
    ASSERT_FALSE(got) << beginning;
    EXPECT_EQ(got.error().code, TC_ERR_MALFORMED) << beginning;
    EXPECT_NE(got.error().message.find("that are not a node's record"), std::string::npos) << got.error().message;
  }
}

// Zeros in front of a number count for its length only.
TEST(BootstrapRecord, is_read_up_to_its_largest_size_and_refused_above_it) {
  const auto of_size = [](size_t size) {
    auto text = encode(sample);
    return text.insert(text.find("3 of"), size - text.size(), '0');
  };
  const auto largest = decode(of_size(max_record_bytes));
  ASSERT_TRUE(largest) << largest.error().message;
  EXPECT_EQ(largest->id, sample.id);
  const auto larger = decode(of_size(max_record_bytes + 1));
  ASSERT_FALSE(larger);
  EXPECT_EQ(larger.error().message, "1025 bytes that are not a node's record");
}

TEST(BootstrapRecord, of_the_last_node_of_as_many_as_there_can_be_is_read) {
  auto last = sample;
  last.count = max_nodes;
  last.id = max_nodes - 1;
  const auto got = decode(encode(last));
  ASSERT_TRUE(got) << got.error().message;
  EXPECT_EQ(got->count, 65536u);
  EXPECT_EQ(got->id, 65535u);
}

TEST(BootstrapRecord, with_a_key_that_is_none_is_refused) {
  const auto line = [](std::string_view key) {
    return fmt::format("threechains-node 2 w 3 of 8 on north at a:1 key {}\n", key);
  };
  ASSERT_TRUE(decode(line(key_text)));
  for (const auto key : {"", "ed25519:", "x", "ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHUR"})
    EXPECT_FALSE(decode(line(key))) << key;
  EXPECT_FALSE(decode(line(std::string(key_text) + "o")));
  EXPECT_FALSE(decode(line(std::string(key_text) + " more")));
}

TEST(BootstrapRecord, of_another_version_is_named_as_such) {
  for (const std::string text :
       {"threechains-node 1 w 3 of 8 on north at 10.0.0.4:41234\n", "threechains-node 3 anything at all\n"}) {
    const auto got = decode(text);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, TC_ERR_VERSION) << text;
    EXPECT_NE(got.error().message.find("version 2"), std::string::npos) << got.error().message;
  }
}

// ---- The address that others are told

// A list as getifaddrs() makes it.
class Interfaces {
 public:
  static constexpr unsigned usual = IFF_UP | IFF_RUNNING;

  Interfaces& add(const char* address, unsigned flags = usual) {
    auto& storage = addresses_.emplace_back();
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    if (::inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
      storage.ss_family = AF_INET;
    } else {
      EXPECT_EQ(::inet_pton(AF_INET6, address, &v6.sin6_addr), 1) << address;
      storage.ss_family = AF_INET6;
    }
    return link(reinterpret_cast<sockaddr*>(&storage), flags);
  }
  Interfaces& add_without_address() { return link(nullptr, usual); }
  Interfaces& add_of_another_family() {
    addresses_.emplace_back().ss_family = AF_PACKET;
    return link(reinterpret_cast<sockaddr*>(&addresses_.back()), usual);
  }
  std::string first(int family) const { return first_routable(list_.empty() ? nullptr : list_.data(), family); }

 private:
  Interfaces& link(sockaddr* address, unsigned flags) {
    ifaddrs entry{};
    entry.ifa_addr = address;
    entry.ifa_flags = flags;
    list_.push_back(entry);
    for (size_t i = 0; i + 1 < list_.size(); ++i) list_[i].ifa_next = &list_[i + 1];
    return *this;
  }
  std::deque<sockaddr_storage> addresses_;
  std::vector<ifaddrs> list_;
};

TEST(FirstRoutable, is_the_first_address_of_the_family_that_is_asked_for) {
  Interfaces all;
  all.add_without_address().add_of_another_family().add("10.0.0.4").add("fd00::4").add("10.0.0.5").add("fd00::5");
  EXPECT_EQ(all.first(AF_INET), "10.0.0.4");
  EXPECT_EQ(all.first(AF_INET6), "[fd00::4]") << "in brackets, for a port behind it";
  EXPECT_EQ(Interfaces().add("10.0.0.4").first(AF_INET6), "");
  EXPECT_EQ(Interfaces().add("fd00::4").first(AF_INET), "");
  EXPECT_EQ(Interfaces().first(AF_INET), "");
}

TEST(FirstRoutable, is_no_address_that_reaches_the_neighbours_only) {
  EXPECT_EQ(Interfaces().add("fe80::1").add("febf::1").first(AF_INET6), "");
  EXPECT_EQ(Interfaces().add("fe80::1").add("fd00::4").first(AF_INET6), "[fd00::4]");
}

TEST(FirstRoutable, is_of_an_interface_that_is_up_and_no_loopback) {
  constexpr auto usual = Interfaces::usual;
  EXPECT_EQ(Interfaces().add("127.0.0.1", usual | IFF_LOOPBACK).first(AF_INET), "");
  EXPECT_EQ(Interfaces().add("10.0.0.1", IFF_UP).first(AF_INET), "");
  EXPECT_EQ(Interfaces().add("10.0.0.1", IFF_RUNNING).first(AF_INET), "");
  EXPECT_EQ(Interfaces().add("10.0.0.1", 0).add("10.0.0.2").first(AF_INET), "10.0.0.2");
}

TEST(AdvertisedAddress, is_where_the_node_listens_when_others_can_use_that) {
  EXPECT_EQ(advertised_address("127.0.0.1:41234", ""), "127.0.0.1:41234");
  EXPECT_EQ(advertised_address("[::1]:5", ""), "[::1]:5");
  EXPECT_EQ(advertised_address("10.0.0.4:5", ""), "10.0.0.4:5");
}

TEST(AdvertisedAddress, is_never_a_wildcard) {
  for (const auto* bound : {"0.0.0.0:7000", "[::]:7000"}) {
    const auto address = advertised_address(bound, "");
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_TRUE(address->ends_with(":7000")) << *address;
    EXPECT_FALSE(address->starts_with("0.0.0.0") || address->starts_with("[::]")) << *address;
  }
}

TEST(AdvertisedAddress, is_what_the_operator_says_with_the_real_port_unless_he_names_one) {
  EXPECT_EQ(advertised_address("0.0.0.0:7000", "login3.example"), "login3.example:7000");
  EXPECT_EQ(advertised_address("0.0.0.0:7000", "10.1.2.3:80"), "10.1.2.3:80");
  EXPECT_EQ(advertised_address("[::]:7000", "[fd00::1]"), "[fd00::1]:7000");
  EXPECT_EQ(advertised_address("[::]:7000", "[fd00::1]:80"), "[fd00::1]:80");
  EXPECT_FALSE(advertised_address("0.0.0.0:7000", "two words"));
  EXPECT_FALSE(advertised_address("0.0.0.0:7000", std::string(300, 'a')));
}

}  // namespace
}  // namespace tc::node::bootstrap

namespace tc::node {
namespace {

using ::testing::HasSubstr;

// ---- What a node makes of its options

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
