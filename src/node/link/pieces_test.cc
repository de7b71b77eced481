// SPDX-License-Identifier: Apache-2.0
//
// Frames that lie in several places: every stretch of them, across every boundary, as one copy and as pieces.
#include "node/link/pieces.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace tc::node {
namespace {

constexpr std::byte untouched{0xee};

// Parts of these sizes, whose bytes are 0, 1, 2 and so on across all of them.
struct Parts {
  explicit Parts(const std::vector<size_t>& sizes) {
    for (const auto size : sizes) total += size;
    for (size_t i = 0; i < total; ++i) bytes.push_back(static_cast<std::byte>(i));
    // Each in memory of its own, so that a sanitizer notices who reads past its end.
    size_t at = 0;
    for (const auto size : sizes) {
      const auto from = bytes.begin() + static_cast<ptrdiff_t>(at);
      memory.emplace_back(from, from + static_cast<ptrdiff_t>(size));
      at += size;
    }
    for (const auto& part : memory) views.emplace_back(part);
  }
  Bytes stretch(size_t from, size_t length) const {
    return {bytes.begin() + static_cast<ptrdiff_t>(from), bytes.begin() + static_cast<ptrdiff_t>(from + length)};
  }
  size_t total = 0;
  Bytes bytes;
  std::vector<Bytes> memory;
  std::vector<ByteView> views;
};

const std::vector<std::vector<size_t>> shapes{
    {}, {0}, {5}, {3, 4}, {0, 3, 4}, {3, 4, 0}, {3, 0, 0, 4}, {1, 1, 1, 1}, {8, 2, 0, 7, 1, 5}};

TEST(Pieces, a_stretch_is_copied_whole_wherever_it_begins_and_ends) {
  for (const auto& shape : shapes) {
    const Parts parts(shape);
    EXPECT_EQ(size_of(parts.views), parts.total);
    for (size_t from = 0; from <= parts.total; ++from)
      for (size_t length = 0; from + length <= parts.total; ++length) {
        SCOPED_TRACE(testing::Message() << length << " bytes from " << from << " of " << testing::PrintToString(shape));
        Bytes to(length + 1, untouched);
        gather(to.data(), parts.views, from, length);
        EXPECT_EQ(to.back(), untouched);
        to.pop_back();
        EXPECT_EQ(to, parts.stretch(from, length));
      }
  }
}

// Takes as many frames as it has room for.
class Sink : public transport::OutStream {
 public:
  Sink(size_t piece_length, size_t room) noexcept : room_(room) { piece_length_ = piece_length; }

  size_t put_gathered(std::span<const transport::GatheredFrame> frames) noexcept override {
    size_t taken = 0;
    for (; taken < frames.size() && room_ > 0; ++taken, --room_) {
      const auto header = wire::decode(frames[taken].header);
      EXPECT_EQ(header.kind, wire::Kind::fragment);
      Bytes body;
      for (const auto part : frames[taken].body) {
        EXPECT_FALSE(part.empty());
        body.insert(body.end(), part.begin(), part.end());
      }
      EXPECT_EQ(header.length, body.size());
      pieces.push_back(std::move(body));
      numbers.push_back(header.number);
    }
    return taken;
  }
  void flush() noexcept override {}

  std::vector<Bytes> pieces;
  std::vector<uint32_t> numbers;

 private:
  std::byte* make_room(size_t) noexcept override { return nullptr; }
  void slow_commit() noexcept override {}
  size_t room_;
};

TEST(Pieces, a_frame_is_written_in_pieces_as_far_as_there_is_room_and_the_last_one_says_so) {
  for (const auto& shape : shapes) {
    const Parts parts(shape);
    for (size_t length = 1; length <= parts.total + 1; ++length)
      for (size_t from = 0; from <= parts.total; ++from)
        for (size_t room = 0; room <= parts.total + 1; ++room) {
          SCOPED_TRACE(testing::Message() << "pieces of " << length << " from " << from << " of "
                                          << testing::PrintToString(shape) << ", room for " << room);
          Sink out(length, room);
          const size_t to = write_pieces(out, parts.views, from);
          ASSERT_EQ(to, std::min(from + room * length, parts.total));
          Bytes written;
          for (size_t i = 0; i < out.pieces.size(); ++i) {
            written.insert(written.end(), out.pieces[i].begin(), out.pieces[i].end());
            EXPECT_EQ(out.numbers[i] == last_piece, from + written.size() == parts.total);
            if (out.numbers[i] != last_piece) {
              EXPECT_EQ(out.pieces[i].size(), length);
            }
          }
          ASSERT_EQ(written, parts.stretch(from, to - from));
        }
  }
}

}  // namespace
}  // namespace tc::node
