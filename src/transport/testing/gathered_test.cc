// SPDX-License-Identifier: Apache-2.0
//
// Frames whose bodies lie elsewhere (OutStream::put_gathered), on every transport that has one of its own, and to a
// reader that falls behind: the wire then takes some of them, and of one perhaps a part.
#include <gtest/gtest.h>

#include "transport/testing/test_node.h"

namespace tc::transport {
namespace {

class Gathered : public testing::TestWithParam<Kind> {
 protected:
  void join() {
    a.connect(b.listen());
    ASSERT_TRUE(a.until([&] {
      b.poll();
      return a.is_open() && b.is_open();
    }));
  }
  // Frames from number `first` on, each body in three parts. How many there was room for.
  size_t put(uint32_t first, size_t count) {
    std::array<Bytes, most_gathered_frames> bodies;
    std::array<std::array<ByteView, 3>, most_gathered_frames> parts;
    std::array<GatheredFrame, most_gathered_frames> frames;
    for (uint32_t i = 0; i < count; ++i) {
      const size_t length = length_of(first + i);
      bodies[i] = patterned(first + i, length);
      const ByteView body = bodies[i];
      parts[i] = {body.first(1), body.subspan(1, length / 3), body.subspan(1 + length / 3)};
      frames[i] = {call_header(first + i, length), parts[i]};
    }
    return a.out().put_gathered({frames.data(), count});
  }
  size_t length_of(uint32_t number) { return 100 + number * size_t{7919} % (a.out().piece_length() - 100); }
  void take_all(uint32_t& number) {
    for (Took took; (took = take_frame(b.in(), number)) != Took::nothing; ++number)
      ASSERT_EQ(took, Took::frame) << number;
    b.in().release();
  }

  SimulatedNetwork network;
  TestNode a{GetParam(), &network}, b{GetParam(), &network};
};

TEST_P(Gathered, frames_arrive_whole_and_in_order_behind_a_reader_that_falls_behind) {
  ASSERT_NO_FATAL_FAILURE(join());
  static constexpr uint32_t frames = 2000;
  uint32_t sent = 0, received = 0, refusals = 0;
  const bool done = a.until(
      [&] {
        for (bool room = true; room && sent < frames;) {  // the reader stands still until there is no room
          const size_t count = std::min<size_t>(most_gathered_frames, frames - sent);
          const size_t taken = put(sent, count);
          sent += static_cast<uint32_t>(taken);
          room = taken == count;
          if (room && sent < frames && put_frame(a.out(), sent, 24)) ++sent;  // one that is written in place
          refusals += room ? 0 : 1;
        }
        a.out().flush();
        b.poll();
        take_all(received);
        return HasFatalFailure() || received == frames;
      },
      60'000);
  EXPECT_TRUE(done) << received << " of " << sent << " frames came";
  EXPECT_GT(refusals, 0u);
}

INSTANTIATE_TEST_SUITE_P(Conformance, Gathered, testing::ValuesIn(kinds, kinds + 5),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tc::transport
