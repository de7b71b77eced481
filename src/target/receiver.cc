// SPDX-License-Identifier: Apache-2.0
#include "target/receiver.h"

#include <algorithm>

namespace tc::target {

Status NumberTable::bind(uint32_t number, Code& code) {
  if (number >= limit) return fail(TC_ERR_LIMIT, "code number {} is used when numbers end at {}", number, limit - 1);
  if (number >= codes_.size()) codes_.resize(std::max<size_t>(number + 1, codes_.size() * 2));
  codes_[number] = &code;
  return {};
}

void NumberTable::forget(const Code& code) noexcept { std::ranges::replace(codes_, &code, nullptr); }

namespace {

// The low byte of the header word of a call without flags.
constexpr uint64_t plain_call = static_cast<uint64_t>(wire::Kind::call);

// Frames whose payload needs more than the 16 bytes that every frame has are the cold path's.
bool runs_in_place(const Code* code) noexcept { return code != nullptr && code->alignment_log2 <= 4; }

void complain_about_length(const transport::InStream&, uint64_t word, FrameHandler& handler) {
  const auto header = wire::decode(word);
  handler.on_broken(fmt::format("a frame of kind {} claims {} bytes, more than its way can carry",
                                static_cast<int>(header.kind), header.length));
}

}  // namespace

size_t receive(transport::InStream& in, const NumberTable& numbers, Executor& executor, FrameHandler& handler,
               size_t most) noexcept {
  size_t taken = 0;
  size_t pads = 0;  // bounded like frames: one that leads to itself must not keep us for ever
  while (taken < most) {
    const uint64_t word = in.peek();
    const auto length = static_cast<size_t>(word >> 32);
    if ((word & 0xff) == plain_call && in.fits(length)) [[likely]] {
      Code* const code = numbers.find(static_cast<uint32_t>(word >> 8) & wire::max_number);
      if (runs_in_place(code)) [[likely]] {
        if (!executor.run_plain(*code, in.body(), length)) [[unlikely]]
          handler.on_touched();
        in.advance(length);
        ++taken;
        continue;
      }
    }
    const auto header = wire::decode(word);
    if (word == 0 || header.kind == wire::Kind::pad) {
      if (in.refill() && ++pads <= most) continue;
      if (in.broken()) handler.on_broken("the ring's frames lead outside it");
      break;
    }
    if (!in.fits(length)) {
      complain_about_length(in, word, handler);
      break;
    }
    if (!handler.on_frame(header, in.body())) break;
    in.advance(length);
    ++taken;
  }
  if (taken != 0) in.release();
  return taken;
}

}  // namespace tc::target
