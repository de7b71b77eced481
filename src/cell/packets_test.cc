// SPDX-License-Identifier: Apache-2.0
#include "cell/packets.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace tc::cell {
namespace {

class Packets : public testing::Test {
 protected:
  Packets() {
    auto pair = socket_pair();
    EXPECT_TRUE(pair) << pair.error().message;
    node = std::move((*pair)[0]);
    cell = std::move((*pair)[1]);
  }
  Status send(std::string_view text, std::span<const int> descriptors = {}) {
    return send_packet(node.get(), as_bytes(text), descriptors);
  }
  ReceivedPacket receive() {
    auto packet = receive_packet(cell.get(), false);
    EXPECT_TRUE(packet) << packet.error().message;
    EXPECT_TRUE(*packet) << "none has come";
    return packet && *packet ? std::move(**packet) : ReceivedPacket{};
  }
  static bool are_one_file(int a, int b) {
    struct stat of_a{}, of_b{};
    return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
  }

  Fd node, cell;
};

TEST_F(Packets, arrive_one_by_one_as_they_were_sent) {
  const std::string longest(max_packet_bytes, 'x');
  for (const auto& text : {std::string("one"), std::string("two"), longest}) ASSERT_TRUE(send(text));
  EXPECT_EQ(as_text(receive().bytes), "one");
  EXPECT_EQ(as_text(receive().bytes), "two");
  EXPECT_EQ(as_text(receive().bytes), longest);
}

TEST_F(Packets, that_have_not_come_are_not_waited_for_unless_that_is_wanted) {
  const auto none = receive_packet(cell.get(), false);
  ASSERT_TRUE(none) << none.error().message;
  EXPECT_FALSE(*none);
}

TEST_F(Packets, bring_their_descriptors) {
  std::array<Fd, start_descriptors> files;
  std::array<int, start_descriptors> numbers{};
  for (size_t i = 0; i < files.size(); ++i) {
    int ends[2];
    ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
    files[i] = Fd(ends[0]);
    numbers[i] = ends[0];
    close(ends[1]);
  }
  for (size_t count = 0; count <= files.size(); ++count) {
    ASSERT_TRUE(send("files", std::span(numbers).first(count)));
    const auto packet = receive();
    EXPECT_EQ(as_text(packet.bytes), "files");
    for (size_t i = 0; i < files.size(); ++i) {
      EXPECT_EQ(static_cast<bool>(packet.descriptors[i]), i < count);
      if (i >= count) continue;
      EXPECT_TRUE(are_one_file(packet.descriptors[i].get(), numbers[i]));
      EXPECT_NE(fcntl(packet.descriptors[i].get(), F_GETFD) & FD_CLOEXEC, 0);
    }
  }
}

TEST_F(Packets, that_are_too_large_are_refused) {
  const std::array<int, start_descriptors + 1> too_many{};
  EXPECT_EQ(send(std::string(max_packet_bytes + 1, 'x')).error().code, TC_ERR_TOO_LARGE);
  EXPECT_EQ(send("files", too_many).error().code, TC_ERR_TOO_LARGE);
  EXPECT_FALSE(*receive_packet(cell.get(), false)) << "nothing was sent";
}

TEST_F(Packets, that_nobody_reads_are_refused_before_they_are_too_many) {
  Status sent;
  for (int i = 0; i < 1'000'000 && sent; ++i) sent = send("a packet");
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, TC_ERR_BUSY);
  receive();
}

TEST_F(Packets, are_empty_for_ever_once_the_other_side_is_gone) {
  ASSERT_TRUE(send("the last one"));
  node.reset();
  EXPECT_EQ(as_text(receive().bytes), "the last one");
  for (const int before : {0, EINTR, EAGAIN}) {
    errno = before;  // of another call
    for (const bool waits : {false, true}) {
      const auto packet = receive_packet(cell.get(), waits);
      ASSERT_TRUE(packet) << packet.error().message;
      ASSERT_TRUE(*packet);
      EXPECT_TRUE((*packet)->bytes.empty());
    }
  }
}

TEST_F(Packets, to_a_side_that_is_gone_are_an_error) {
  cell.reset();
  const auto sent = send("nobody reads this");
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, TC_ERR_IO);
}

TEST_F(Packets, of_what_is_no_socket_are_an_error) {
  const auto packet = receive_packet(-1, false);
  ASSERT_FALSE(packet);
  EXPECT_EQ(packet.error().code, TC_ERR_IO);
}

}  // namespace
}  // namespace tc::cell
