// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/slot_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

namespace tc::ucp::slot {

namespace {

static_assert(std::endian::native == std::endian::little, "words of a frame are little-endian");

using Words = std::array<uint64_t, 6>;
static_assert(sizeof(Words) == header_bytes);

// Odd numbers with as many ones as zeroes in every byte.
constexpr std::array<uint64_t, 6> keys{0xa5c36a95d2b4e187, 0x9c35a64bd41ee2b1, 0xc59a3be1724d8ecb,
                                       0x6ab1d54e93c3a58d, 0xe19a4b36c57293d1, 0x3ca7e4b1962dc593};

// The two halves of a 128-bit product, folded: each bit of the factors reaches each bit of the result.
uint64_t mix(uint64_t a, uint64_t b) noexcept {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t word(const std::byte* at) noexcept {
  uint64_t value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

uint32_t low(uint64_t word) noexcept { return static_cast<uint32_t>(word); }
uint32_t high(uint64_t word) noexcept { return static_cast<uint32_t>(word >> 32); }
uint64_t pair(uint32_t low, uint32_t high) noexcept { return low | uint64_t{high} << 32; }

// Over everything in the header but the check itself, the low half of word 1.
uint32_t header_check(const Words& w) noexcept {
  const auto all = mix(w[0] ^ keys[0], w[2] ^ keys[1]) ^ mix(w[3] ^ keys[2], w[4] ^ keys[3]) ^
                   mix(w[5] ^ keys[4], uint64_t{high(w[1])} ^ keys[5]);
  return low(all) ^ high(all);
}

Header decode(const Words& w) noexcept {
  Header header;
  header.length = high(w[0]);
  header.flags = static_cast<uint16_t>(high(w[1]));
  header.payload_size = low(w[2]);
  header.nonce = high(w[2]);
  header.body_check = w[3];
  header.id = {w[4], w[5]};
  return header;
}

bool sizes_agree(const Header& header) noexcept {
  const size_t payload_end = header_bytes + size_t{header.payload_size};
  if ((header.flags & flag_code) == 0) return header.length == payload_end;
  return header.length > code_offset(header.payload_size);
}

}  // namespace

ShortId short_id(const ContentId& id) noexcept { return {word(id.bytes.data()), word(id.bytes.data() + 8)}; }

HeaderBytes encode(const Header& header) noexcept {
  Words w{pair(magic, header.length),
          pair(0, header.flags | uint32_t{version} << 16),
          pair(header.payload_size, header.nonce),
          header.body_check,
          header.id[0],
          header.id[1]};
  w[1] |= header_check(w);
  return std::bit_cast<HeaderBytes>(w);
}

uint64_t check_of(ByteView body) noexcept {
  const auto* at = body.data();
  size_t left = body.size();
  std::array<uint64_t, 4> sums{keys[1], keys[2], keys[3], keys[4]};
  for (; left >= 64; left -= 64, at += 64)
    for (size_t i = 0; i < 4; ++i) sums[i] = mix(word(at + 16 * i) ^ keys[i], word(at + 16 * i + 8) ^ sums[i]);
  std::array<std::byte, 64> tail{};  // zeroes behind; the length is part of the check
  if (left != 0) std::memcpy(tail.data(), at, left);
  for (size_t i = 0; i < 4; ++i) sums[i] = mix(word(&tail[16 * i]) ^ keys[i], word(&tail[16 * i + 8]) ^ sums[i]);
  return mix(sums[0] ^ sums[1] ^ keys[4], mix(sums[2] ^ sums[3] ^ keys[5], body.size() ^ keys[0]));
}

bool begins_frame(const std::byte* slot) noexcept {
  uint64_t first;
  if (reinterpret_cast<uintptr_t>(slot) % 8 == 0) [[likely]] {
    first = __atomic_load_n(reinterpret_cast<const uint64_t*>(slot), __ATOMIC_ACQUIRE);
  } else {
    first = word(slot);
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  return low(first) == magic;
}

Look check_header(const HeaderBytes& bytes, size_t room, Header& header) noexcept {
  const auto w = std::bit_cast<Words>(bytes);
  if (low(w[0]) != magic || low(w[1]) != header_check(w)) return Look::incomplete;
  header = decode(w);
  if ((high(w[1]) & 0xffff'0000) != uint32_t{version} << 16 || (header.flags & ~known_flags) != 0 ||
      !sizes_agree(header))
    return Look::malformed;
  return header.length > room ? Look::too_long : Look::frame;
}

Look look(const std::byte* slot, size_t size, Header& header) noexcept {
  if (size < header_bytes || !begins_frame(slot)) return Look::nothing;
  HeaderBytes copy;
  std::memcpy(copy.data(), slot, copy.size());
  const auto found = check_header(copy, size, header);
  if (found == Look::frame && (header.flags & flag_ordered) == 0 &&
      check_of({slot + header_bytes, header.length - header_bytes}) != header.body_check)
    return Look::incomplete;
  return found;
}

void clear(std::byte* slot) noexcept {
  if (reinterpret_cast<uintptr_t>(slot) % 8 == 0) [[likely]]
    __atomic_store_n(reinterpret_cast<uint64_t*>(slot), 0, __ATOMIC_RELEASE);
  else
    std::memset(slot, 0, 8);
}

void store_ordered(std::byte* to, const HeaderBytes& header, ByteView body) noexcept {
  std::memcpy(to + 8, header.data() + 8, header_bytes - 8);
  // In pieces: some CPUs store a copy of a megabyte past their caches (seen on AMD EPYC), and the target waits for memory.
  constexpr size_t piece = 256 * 1024;
  for (size_t done = 0; done < body.size(); done += piece)
    std::memcpy(to + header_bytes + done, body.data() + done, std::min(piece, body.size() - done));
  __atomic_store_n(reinterpret_cast<uint64_t*>(to), word(header.data()), __ATOMIC_RELEASE);
}

std::string describe(Look look, const Header& header, size_t slot_size) {
  switch (look) {
    case Look::nothing: return "there is no frame";
    case Look::incomplete:
      return "a frame began to arrive and its checks never held: its sender ended half way, wrote over it, or damaged "
             "it";
    case Look::frame: return "a frame";
    case Look::too_long:
      return fmt::format(
          "a frame says it has {} bytes when the polled buffer has {}: give each slot room for the full "
          "frame (frame_size of its message)",
          header.length, slot_size);
    case Look::malformed: break;
  }
  return fmt::format(
      "a frame of {} bytes says it has {} bytes of payload and flags {}: its sender speaks another "
      "version of the format, or made it by hand",
      header.length, header.payload_size, header.flags);
}

}  // namespace tc::ucp::slot
