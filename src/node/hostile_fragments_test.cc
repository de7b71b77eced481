// SPDX-License-Identifier: Apache-2.0
//
// A peer whose fragments hold no frame, too much of one, or another frame than they say.
#include "node/testing/hostile.h"

namespace tc::node {
namespace {

using test::Hostile;
using wire::Kind;

TEST_F(Hostile, a_frame_beyond_the_limit_is_refused_with_its_first_piece) {
  join();
  const auto frame = wire::make_frame(Kind::call, 0, 0, Bytes(70 * 1024));
  peer.send(Kind::fragment, more_pieces, ByteView(frame).first(8));
  expect_dropped("its pieces are a frame of 71680 bytes when at most 69632 are taken");
}

TEST_F(Hostile, a_peer_that_vanishes_between_fragments_leaves_nothing_behind) {
  join();
  const auto frame = wire::make_frame(Kind::call, 0, 0, Bytes(20'000));
  ASSERT_TRUE(peer.send(Kind::fragment, more_pieces, ByteView(frame).first(10'000)));
  turns();
  EXPECT_GT(target->buffers().budget().used(), 0u);
  peer.vanish();
  EXPECT_TRUE(run_until([&] { return target->buffers().budget().used() == 0; }));
}

TEST_F(Hostile, fragments_that_hold_no_frame_are_refused) {
  join();
  peer.send(Kind::fragment, last_piece, Bytes(7));
  expect_dropped("its first piece is 7 bytes");
  leave();
  join();
  peer.send(Kind::fragment, last_piece, Bytes(16));
  expect_dropped("its pieces hold no frame");
}

TEST_F(Hostile, fragments_whose_frame_has_another_length_are_refused) {
  const auto frame = wire::make_frame(Kind::call, 0, 0, Bytes(100));
  for (const auto& [mark, size] : {std::pair{last_piece, 107u}, {more_pieces, 108u}, {more_pieces, 109u}}) {
    auto sent = frame;
    sent.resize(size);
    join();
    peer.send(Kind::fragment, mark, sent);
    expect_dropped("bytes or more when the frame in them is 108");
    leave();
  }
}

TEST_F(Hostile, fragments_in_fragments_are_refused) {
  join();
  peer.send(Kind::fragment, last_piece, wire::make_frame(Kind::fragment, 0, 1, wire::make_frame(Kind::call, 0, 0, {})));
  expect_dropped("its pieces hold no frame");
}

TEST_F(Hostile, kinds_without_a_place_among_calls_are_refused_in_fragments_as_well) {
  for (const auto kind : {static_cast<Kind>(8), static_cast<Kind>(12), Kind::pad, static_cast<Kind>(15)}) {
    join();
    peer.send(Kind::fragment, last_piece, wire::make_frame(kind, 0, 1, Bytes(8)));
    expect_dropped("has no place among calls");
    leave();
  }
}

TEST_F(Hostile, a_fragment_with_an_unknown_mark_is_refused) {
  join();
  peer.send(Kind::fragment, 2, Bytes(8));
  expect_dropped("a fragment is marked 2");
}

}  // namespace
}  // namespace tc::node
