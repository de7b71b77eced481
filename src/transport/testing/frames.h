// SPDX-License-Identifier: Apache-2.0
//
// For tests: frames whose content can be checked at the other end, and numbers that are the same in every run.
#pragma once

#include <algorithm>

#include "transport/stream.h"

namespace tc::transport {

// The byte at `index` of the body of frame `number`.
inline std::byte pattern(uint32_t number, size_t index) noexcept {
  return static_cast<std::byte>(number * 131u + index * 7u + (index >> 8));
}

inline uint64_t call_header(uint32_t number, size_t length) noexcept {
  return wire::encode(wire::Kind::call, 0, number & wire::max_number, static_cast<uint32_t>(length));
}
inline Bytes patterned(uint32_t number, size_t length) {
  Bytes body(length);
  for (size_t i = 0; i < length; ++i) body[i] = pattern(number, i);
  return body;
}
// As it lies on a stream of bytes: header, body, and the padding behind it.
inline Bytes frame_bytes(uint32_t number, size_t length) {
  Bytes frame(wire::stride(length));
  const uint64_t header = call_header(number, length);
  std::memcpy(frame.data(), &header, sizeof header);
  std::ranges::copy(patterned(number, length), frame.begin() + wire::header_bytes);
  return frame;
}

// Writes CALL `number` with `length` patterned bytes. False when there is no room now.
inline bool put_frame(OutStream& out, uint32_t number, size_t length) {
  std::byte* const at = out.reserve(length);
  if (at == nullptr) return false;
  std::ranges::copy(patterned(number, length), at + wire::header_bytes);
  out.commit(call_header(number, length));
  return true;
}

enum class Took { nothing, frame, wrong };

// Takes one frame off and checks that it is CALL `number` with patterned bytes.
inline Took take_frame(InStream& in, uint32_t number) {
  for (;;) {
    const uint64_t word = in.peek();
    const wire::FrameHeader header = wire::decode(word);
    if (word == 0 || header.kind == wire::Kind::pad || !in.fits(header.length)) {
      if (!in.refill()) return in.broken() ? Took::wrong : Took::nothing;
      continue;
    }
    if (header.kind != wire::Kind::call || header.number != (number & wire::max_number)) return Took::wrong;
    for (size_t i = 0; i < header.length; ++i)
      if (in.body()[i] != pattern(number, i)) return Took::wrong;
    in.advance(header.length);
    return Took::frame;
  }
}

// Takes off whatever a hostile peer made of a stream, touching every byte of it. How many frames there were.
inline size_t take_anything(InStream& in) {
  size_t frames = 0;
  for (; !in.broken(); ++frames) {
    const uint64_t word = in.peek();
    const wire::FrameHeader header = wire::decode(word);
    if (word == 0 || header.kind == wire::Kind::pad || !in.fits(header.length)) {
      if (!in.refill()) break;
      continue;
    }
    volatile std::byte sum{};
    for (size_t i = 0; i < header.length; ++i) sum = sum ^ in.body()[i];
    in.advance(header.length);
  }
  in.release();
  return frames;
}

// Small, fast, and the same in every run.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 2654435769u + 88172645463325252u) {}
  uint64_t next() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  size_t below(size_t bound) noexcept { return static_cast<size_t>(next() % bound); }

 private:
  uint64_t state_;
};

}  // namespace tc::transport
