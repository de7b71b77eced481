// SPDX-License-Identifier: Apache-2.0
#include "trust/known_nodes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>

#include "base/file.h"
#include "trust/private_file.h"
#include "trust/testing/keys.h"

namespace tc::trust {
namespace {

using ::testing::HasSubstr;
using testing::public_key;

class KnownNodesFile : public ::testing::Test {
 protected:
  TemporaryDirectory directory_ = TemporaryDirectory::create().value();
  KnownNodes nodes_{directory_.file("known-nodes")};
};

TEST_F(KnownNodesFile, a_remembered_key_is_found_at_its_address_alone) {
  EXPECT_EQ(nodes_.find("10.0.0.7:7001").value(), std::nullopt);
  ASSERT_TRUE(nodes_.remember("10.0.0.7:7001", public_key(1)));
  ASSERT_TRUE(nodes_.remember("[::1]:7001", public_key(2)));
  EXPECT_EQ(nodes_.find("10.0.0.7:7001").value(), public_key(1));
  EXPECT_EQ(nodes_.find("[::1]:7001").value(), public_key(2));
  EXPECT_EQ(nodes_.find("10.0.0.7:700").value(), std::nullopt);
}

TEST_F(KnownNodesFile, another_key_does_not_replace_the_first) {
  ASSERT_TRUE(nodes_.remember("a:1", public_key(1)));
  EXPECT_TRUE(nodes_.remember("a:1", public_key(1)));
  EXPECT_EQ(nodes_.remember("a:1", public_key(2)).error().code, TC_ERR_BUSY);
  EXPECT_EQ(nodes_.find("a:1").value(), public_key(1));
}

TEST_F(KnownNodesFile, a_forgotten_address_may_have_another_key) {
  ASSERT_TRUE(nodes_.remember("a:1", public_key(1)));
  ASSERT_TRUE(nodes_.remember("b:1", public_key(1)));
  EXPECT_EQ(nodes_.forget("c:1"), false);
  EXPECT_EQ(nodes_.forget("a:1"), true);
  EXPECT_TRUE(nodes_.remember("a:1", public_key(2)));
  EXPECT_EQ(nodes_.find("b:1").value(), public_key(1));
}

TEST_F(KnownNodesFile, an_address_that_would_be_another_line_is_refused) {
  for (const auto& address : {std::string(), std::string("a b"), std::string("a\nb"), std::string(301, 'a')})
    EXPECT_EQ(nodes_.remember(address, public_key(1)).error().code, TC_ERR_INVALID) << address;
}

TEST(CanonicalAddress, is_one_for_all_spellings_and_asks_no_name_server) {
  for (const auto* const address :
       {"127.0.0.1:7001", "localhost:7001", "LOCALHOST:7001", "localhost.:7001", "127.0.1:7001", "127.1:7001",
        "127.000.000.001:7001", "[::ffff:127.0.0.1]:7001", "[::FFFF:7f00:1]:7001", "2130706433:7001"})
    EXPECT_EQ(canonical_address(address), "127.0.0.1:7001") << address;
  EXPECT_EQ(canonical_address("[2001:DB8:0:0::1]:7001"), "[2001:db8::1]:7001");
  EXPECT_EQ(canonical_address("North.Example.:7001"), "north.example:7001");
  for (const auto* const other : {"n1", "", "unix:/run/a:b", "a:1", ":7001", "[]:1"})
    EXPECT_EQ(canonical_address(other), other);
}

TEST_F(KnownNodesFile, knows_an_address_in_all_its_spellings) {
  ASSERT_TRUE(write_file_atomically(nodes_.file(), as_bytes("localhost:1 " + public_key(1).text() + "\n")));
  EXPECT_EQ(nodes_.find("127.1:1").value(), public_key(1)) << "also one that was written down as it was";
  EXPECT_EQ(nodes_.remember("127.0.0.1:1", public_key(2)).error().code, TC_ERR_BUSY);
  EXPECT_EQ(nodes_.forget("[::ffff:127.0.0.1]:1").value(), true);
  EXPECT_EQ(nodes_.find("localhost:1").value(), std::nullopt);
}

TEST_F(KnownNodesFile, a_line_that_is_none_is_named) {
  ASSERT_TRUE(write_file_atomically(nodes_.file(), as_bytes("a:1 " + public_key(1).text() + "\nb:1\n")));
  const auto found = nodes_.find("a:1");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("known-nodes, line 2: "));
}

TEST_F(KnownNodesFile, that_others_may_write_is_refused) {
  ASSERT_TRUE(nodes_.remember("a:1", public_key(1)));
  ASSERT_EQ(::chmod(nodes_.file().c_str(), 0622), 0);
  EXPECT_EQ(nodes_.find("a:1").error().code, TC_ERR_DENIED);
}

TEST_F(KnownNodesFile, edits_wait_for_another_and_then_give_up) {
  ASSERT_TRUE(nodes_.remember("a:1", public_key(1)));
  const auto lock = FileLock::of(nodes_.file()).value();
  auto remembered = std::async(std::launch::async, [&] { return nodes_.remember("b:1", public_key(2)); });
  const auto forgotten = nodes_.forget("a:1");
  const auto added = remembered.get();
  ASSERT_FALSE(forgotten || added);
  EXPECT_EQ(forgotten.error().code, TC_ERR_BUSY);
  EXPECT_EQ(added.error().code, TC_ERR_BUSY);
  EXPECT_EQ(nodes_.find("a:1").value(), public_key(1));
}

}  // namespace
}  // namespace tc::trust
