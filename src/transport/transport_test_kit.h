// SPDX-License-Identifier: Apache-2.0
//
// For this folder's tests: a node that only records what its transport tells it, and frames with a content
// that can be checked at the other end.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace tc::transport {

struct Recorder final : Events {
  struct Lost {
    Connection* connection;
    Error reason;
  };
  void on_accept(std::unique_ptr<Connection> connection) override { accepted.push_back(std::move(connection)); }
  void on_control(Connection& connection, ByteView frame) override {
    controls.emplace_back(frame.begin(), frame.end());
    control_from.push_back(&connection);
  }
  bool on_call(Connection&, uint32_t, const wire::Header&, std::byte*) override { return false; }
  void on_lost(Connection& connection, const Error& reason) override { lost.push_back({&connection, reason}); }

  std::vector<std::unique_ptr<Connection>> accepted;
  std::vector<Bytes> controls;
  std::vector<Connection*> control_from;
  std::vector<Lost> lost;
};

inline Bytes control_frame(uint32_t number, size_t length = 8) {
  return wire::make_frame(wire::Kind::hello, 0, number, Bytes(length, std::byte{7}));
}

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

// As put_frame(), by the shortest way there is.
inline bool put_frame_alone(Transport& transport, Connection& to, uint32_t number, size_t length) {
  const auto header = call_header(number, length);
  const auto body = patterned(number, length);
  const auto pieces = {ByteView(body).first(length / 3), ByteView(body).subspan(length / 3)};
  return transport.put_alone(to.index(), header, pieces) || to.out().put_alone(header, pieces);
}

// Writes CALL `number` with `length` patterned bytes. False when there is no room now.
inline bool put_frame(OutStream& out, uint32_t number, size_t length) {
  const auto header = call_header(number, length);
  std::byte* const at = out.reserve(length);
  if (at == nullptr) return false;
  std::ranges::copy(patterned(number, length), at + wire::header_bytes);
  out.commit(header);
  return true;
}

enum class Took { nothing, frame, wrong };

// Takes one frame off and checks that it is CALL `number` with patterned bytes.
inline Took take_frame(InStream& in, uint32_t number, size_t* length = nullptr) {
  for (;;) {
    const uint64_t word = in.peek();
    const wire::Header header = wire::decode(word);
    if (word == 0 || header.kind == wire::Kind::pad) {
      if (!in.refill()) return Took::nothing;
      continue;
    }
    if (header.kind != wire::Kind::call || header.number != (number & wire::max_number) || !in.fits(header.length))
      return Took::wrong;
    for (size_t i = 0; i < header.length; ++i)
      if (in.body()[i] != pattern(number, i)) return Took::wrong;
    if (length != nullptr) *length = header.length;
    in.advance(header.length);
    return Took::frame;
  }
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
