// SPDX-License-Identifier: Apache-2.0
#include "node/link/pieces.h"

#include <algorithm>
#include <cstring>

namespace tc::node {

namespace {

// In a buffer, the header lies so that the body behind it begins at a multiple of 64.
constexpr size_t lead = 64 - wire::header_bytes;
// Of a frame that is refused: its call header, its return address, and what names its code.
constexpr size_t beginning_bytes = 1024;

// As std::memcpy(), line by line. That one leaves so many bytes to one instruction (x86's `rep movsb`), which is up to twice
// as slow on lines that another core has written.
void copy_lines(std::byte* to, ByteView from) noexcept {
  struct Line {
    std::byte bytes[64];
  };
  size_t at = 0;
  for (; from.size() - at >= sizeof(Line); at += sizeof(Line)) {
    Line line;
    std::memcpy(&line, from.data() + at, sizeof line);
    std::memcpy(to + at, &line, sizeof line);
  }
  if (at != from.size()) std::memcpy(to + at, from.data() + at, from.size() - at);
}

using Slices = std::array<ByteView, transport::most_gathered_parts>;

// `length` bytes of what lies in `parts`, from `from` on.
std::span<const ByteView> slice(Slices& into, std::span<const ByteView> parts, size_t from, size_t length) noexcept {
  size_t count = 0;
  for (const auto part : parts) {
    if (length == 0) break;
    if (from < part.size()) {
      const size_t here = std::min(length, part.size() - from);
      into[count++] = part.subspan(from, here);
      length -= here;
      from = 0;
    } else {
      from -= part.size();
    }
  }
  return {into.data(), count};
}

}  // namespace

size_t write_pieces(transport::OutStream& out, std::span<const ByteView> parts, size_t from) noexcept {
  const size_t total = size_of(parts);
  std::array<transport::GatheredFrame, transport::most_gathered_frames> pieces;
  std::array<Slices, transport::most_gathered_frames> slices;
  std::array<size_t, transport::most_gathered_frames> ends;
  while (from < total) {
    size_t count = 0;
    for (size_t at = from; at < total && count < pieces.size(); ++count) {
      const size_t length = std::min(out.piece_length(), total - at);
      const auto body = slice(slices[count], parts, at, length);
      ends[count] = at += length;
      const uint32_t number = at == total ? last_piece : more_pieces;
      pieces[count] = {wire::encode(wire::Kind::fragment, 0, number, static_cast<uint32_t>(length)), body};
    }
    const size_t taken = out.put_gathered({pieces.data(), count});
    if (taken != 0) from = ends[taken - 1];
    if (taken != count) break;
  }
  return from;
}

Result<bool> Assembly::add(ByteView piece, bool is_last) {
  if (size_ == 0) TC_CHECK(begin(piece));
  if (piece.size() > size_ - come_ || is_last != (piece.size() == size_ - come_))
    return fail(TC_ERR_MALFORMED, "its pieces are {} bytes or more when the frame in them is {}", come_ + piece.size(),
                size_);
  if (whole_.memory) {
    if (const auto used = whole_.memory.use(lead + come_ + piece.size()); used) [[likely]]
      copy_lines(whole_.memory.data() + lead + come_, piece);
    else if (come_ == 0)
      refuse(piece.subspan(wire::header_bytes), used.error());
    else
      give_up(used.error());
  }
  come_ += piece.size();
  if (!is_last) return false;
  size_ = 0;
  announced_ = {};
  return is_collecting();
}

Status Assembly::begin(ByteView piece) {
  uint64_t word = 0;
  if (piece.size() < sizeof word) return fail(TC_ERR_MALFORMED, "its first piece is {} bytes", piece.size());
  std::memcpy(&word, piece.data(), sizeof word);
  const auto header = wire::decode(word);
  if (header.kind == wire::Kind::fragment || header.kind == wire::Kind::none)
    return fail(TC_ERR_MALFORMED, "its pieces hold no frame");
  if (header.length > limit_)
    return fail(TC_ERR_TOO_LARGE, "its pieces are a frame of {} bytes when at most {} are taken", header.length,
                limit_);
  whole_ = {};
  whole_.header = header;
  size_ = wire::header_bytes + header.length;
  come_ = slow_from_ = 0;
  slow_ns_ = 0;
  if (auto reserved = reserve(); !reserved) refuse(piece.subspan(wire::header_bytes), std::move(reserved).error());
  return {};
}

Status Assembly::reserve() {
  if (share_ != nullptr && !announced_.take_share(share_, size_))
    return fail(TC_ERR_LIMIT,
                "{} bytes of this peer's messages wait or are under way, {} more are wanted, and its share of "
                "message-memory is {}",
                share_->used(), size_, share_->limit());
  TC_ASSIGN(whole_.memory, pool_.reserve(lead + size_));
  whole_.body = whole_.memory.data() + lead + wire::header_bytes;
  return {};
}

bool Assembly::is_stalled(uint64_t passed_ns) noexcept {
  if (!is_collecting()) return false;
  slow_ns_ += passed_ns;
  if (come_ - slow_from_ >= least_bytes) {
    slow_from_ = come_;
    slow_ns_ = 0;
  }
  return slow_ns_ >= stall_ns;
}

void Assembly::give_up(Error why) {
  const auto here = come_ > wire::header_bytes ? come_ - wire::header_bytes : 0;
  refuse({whole_.body, here}, std::move(why));
}

// What comes of the frame from now on is dropped.
void Assembly::refuse(ByteView beginning, Error why) {
  const auto kept = beginning.first(std::min(beginning.size(), beginning_bytes));
  refused_ = {whole_.header, std::move(why), Bytes(kept.begin(), kept.end())};
  whole_ = {};
  announced_ = {};
}

}  // namespace tc::node
