// SPDX-License-Identifier: Apache-2.0
//
// Listening at a path. What a port does is tried on every transport (transport/testing).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/file.h"
#include "transport/testing/test_node.h"

namespace tc::transport {
namespace {

using testing::HasSubstr;

class ListeningAtAPath : public testing::Test {
 protected:
  Result<std::string> listen() { return node->transport->listen(address); }
  bool progress_until(const std::function<bool()>& done) {
    return node->until([&] {
      client.poll();
      return done();
    });
  }

  TemporaryDirectory folder = TemporaryDirectory::create().value();
  const std::filesystem::path file = folder.path() / "socket";
  const std::string address = "unix:" + file.string();
  std::unique_ptr<TestNode> node = std::make_unique<TestNode>(NetworkOptions{});
  TestNode client{NetworkOptions{}};
};

TEST_F(ListeningAtAPath, a_peer_is_let_in_and_the_file_is_of_our_user_alone_and_goes_with_the_node) {
  EXPECT_EQ(listen().value(), address);
  struct stat found{};
  ASSERT_EQ(::stat(file.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600u);
  client.connect(address);
  EXPECT_TRUE(progress_until([&] { return client.is_open() && node->is_open(); }));
  client.drop_peer();
  node.reset();
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(ListeningAtAPath, a_peer_of_a_refused_origin_is_told_so_before_it_greets) {
  EXPECT_TRUE(listen());
  node->admits = [](const Origin&) { return false; };
  client.connect(address);
  ASSERT_TRUE(progress_until([&] { return client.lost.has_value(); }));
  EXPECT_THAT(client.lost->message, HasSubstr("this origin is refused"));
  EXPECT_EQ(node->accepted, 0u);
  EXPECT_EQ(node->refused.size(), 1u);
}

TEST_F(ListeningAtAPath, a_file_that_is_no_socket_stays_and_is_an_error) {
  EXPECT_TRUE(write_file_atomically(file, as_bytes(std::string_view("precious"))));
  const auto listening = listen();
  ASSERT_FALSE(listening);
  EXPECT_THAT(listening.error().message, HasSubstr("listening at " + address));
  EXPECT_EQ(std::filesystem::file_size(file), 8u);
}

TEST_F(ListeningAtAPath, a_socket_that_nobody_listens_at_is_replaced_and_one_of_a_living_node_is_not) {
  EXPECT_TRUE(listen());
  const auto other = client.transport->listen(address);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("another process listens there already"));
  const auto kept = folder.path() / "kept";
  std::filesystem::create_hard_link(file, kept);
  node.reset();
  std::filesystem::rename(kept, file);  // as if the node had died
  EXPECT_TRUE(client.transport->listen(address));
}

}  // namespace
}  // namespace tc::transport
