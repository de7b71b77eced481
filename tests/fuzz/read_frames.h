// SPDX-License-Identifier: Apache-2.0
//
// For fuzz targets: reads a stream as the receiver of a node does.
#pragma once

#include <cstdlib>

#include "transport/stream.h"

namespace tc::fuzz {

inline void expect(bool truth) {
  if (!truth) std::abort();
}

// Touches the first and the last byte of up to `most` frames. How many there were.
inline unsigned read_frames(transport::InStream& in, unsigned most) {
  volatile std::byte sink{};
  unsigned frames = 0;
  for (unsigned step = 0; step < most; ++step) {
    const uint64_t word = in.peek();
    const auto header = wire::decode(word);
    if (word == 0 || header.kind == wire::Kind::pad || !in.fits(header.length)) {
      if (!in.refill()) break;
      continue;
    }
    if (header.length != 0) sink = in.body()[0] | in.body()[header.length - 1];
    in.advance(header.length);
    ++frames;
  }
  (void)sink;
  in.release();
  return frames;
}

}  // namespace tc::fuzz
