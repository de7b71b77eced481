// SPDX-License-Identifier: Apache-2.0
//
// What a hostile peer can send by a socket: bytes, cut into pieces anywhere. The oracle: the reader stays inside its
// memory, finds the same frames however the bytes were cut, and ends where the bytes do.
#include <algorithm>
#include <cstring>

#include "read_frames.h"
#include "transport/socket/byte_stream.h"

namespace {

using namespace tc;             // NOLINT
using namespace tc::transport;  // NOLINT

class Pieces final : public Channel {
 public:
  // `cuts`: how long each piece is, again and again; none: all at once.
  Pieces(ByteView bytes, ByteView cuts) : bytes_(bytes), cuts_(cuts) {}
  Result<size_t> send(ByteView) override { return 0; }
  Result<size_t> receive(std::span<std::byte> into) override {
    size_t size = std::min(bytes_.size(), into.size());
    if (!cuts_.empty()) size = std::min(size, 1 + static_cast<size_t>(cuts_[next_++ % cuts_.size()]) * 16);
    std::ranges::copy(bytes_.first(size), into.begin());
    bytes_ = bytes_.subspan(size);
    return size;
  }
  bool empty() const { return bytes_.empty(); }

 private:
  ByteView bytes_, cuts_;
  size_t next_ = 0;
};

struct Found {
  unsigned frames = 0;
  bool broken = false;
  bool operator==(const Found&) const = default;
};

Found read_all(ByteView bytes, ByteView cuts) {
  Pieces pieces(bytes, cuts);
  ByteIn in;
  in.open();
  Found found;
  while (!pieces.empty() && !in.broken() && in.has_room()) {
    fuzz::expect(in.fill(pieces).has_value());
    found.frames += fuzz::read_frames(in, 100'000);
  }
  found.broken = in.broken();
  return found;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 4) return 0;
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  fuzz::expect(read_all(bytes.subspan(4), {}) == read_all(bytes.subspan(4), bytes.first(4)));
  return 0;
}
