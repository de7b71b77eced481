// SPDX-License-Identifier: Apache-2.0
//
// The frame of the papers' API (<threechains/ucp_ifunc.h>): what a source writes into a slot of memory that the
// target's application polls. docs/wire-format.md has every byte.
//
//     header, 48 bytes | payload | padding to 16 | code: CodeHead, bundle   (the code only the first time)
//
// A slot is the application's memory: it may hold anything before the first frame, any part of a frame while one
// lands, and whatever a hostile peer writes. So a frame counts as arrived only when its checks hold. One that the
// source stored in order itself (flag_ordered: body first, then the word that begins the frame, with release) needs
// none over its body.
//
// Threads: any; nothing here keeps state.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/content_id.h"

namespace tc::ucp::slot {

inline constexpr size_t header_bytes = 48;
inline constexpr size_t alignment = 16;        // of the payload and of the code, counted from the frame's begin
inline constexpr uint32_t magic = 0x9c554354;  // "TCU" and a byte that no text has
inline constexpr uint8_t version = 1;
inline constexpr uint16_t flag_ordered = 1;  // the first word was stored last: no check over the body
inline constexpr uint16_t flag_code = 2;     // the code follows the payload
inline constexpr uint16_t known_flags = flag_ordered | flag_code;

// The first 16 bytes of a content id. Too long to meet another's by accident; the whole one stands before the code.
using ShortId = std::array<uint64_t, 2>;
ShortId short_id(const ContentId& id) noexcept;

struct Header {
  uint32_t length = 0;  // of the frame, header and all
  uint32_t payload_size = 0;
  uint32_t nonce = 0;  // tells two frames with the same content apart
  uint16_t flags = 0;
  uint64_t body_check = 0;  // of the bytes behind the header; 0 when ordered
  ShortId id{};

  bool operator==(const Header&) const = default;
};

constexpr size_t padded(size_t size) noexcept { return (size + alignment - 1) & ~(alignment - 1); }
constexpr size_t code_offset(size_t payload_size) noexcept { return header_bytes + padded(payload_size); }

using HeaderBytes = std::array<std::byte, header_bytes>;
HeaderBytes encode(const Header& header) noexcept;

// 64 bits over all bytes: not against malice, but against bytes that have not landed yet.
uint64_t check_of(ByteView body) noexcept;

enum class Look : uint8_t {
  nothing,     // no frame begins here
  incomplete,  // one does, and not all of it is there yet (or never will be)
  frame,       // `header` describes a whole frame that fits the slot, its sizes agree
  too_long,    // a frame that says it is longer than the slot
  malformed,   // sizes that contradict each other, an unknown version or flag
};

// A header by itself, of a frame for which there is room for `room` bytes: everything but the check over the body.
Look check_header(const HeaderBytes& bytes, size_t room, Header& header) noexcept;

// One step of polling. Reads the header out of the slot once, and believes only that copy. Reads the body for a frame
// that is not ordered. `slot` is of any alignment.
Look look(const std::byte* slot, size_t size, Header& header) noexcept;

// The code of a frame that has flag_code, behind a payload that lies at `payload`.
inline ByteView code_of(const Header& header, const std::byte* payload) noexcept {
  const size_t at = code_offset(header.payload_size);
  return {payload + (at - header_bytes), header.length - at};
}

// The first word of a frame, which is all that an empty poll reads. `slot` has 8 bytes at least.
bool begins_frame(const std::byte* slot) noexcept;
// Makes the slot look empty.
void clear(std::byte* slot) noexcept;
// Writes a frame that is flag_ordered into memory that both sides see as theirs: `bytes` is the whole frame. `to` must
// be a multiple of 8.
void store_ordered(std::byte* to, const HeaderBytes& header, ByteView body) noexcept;

// What look() found to be wrong, as a sentence.
std::string describe(Look look, const Header& header, size_t slot_size);

}  // namespace tc::ucp::slot
