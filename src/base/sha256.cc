// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <bit>

#include "base/sha256_blocks.h"

namespace tc {

namespace {

using sha256_blocks::Blocks;
using sha256_blocks::round_constants;

using State = std::array<uint32_t, 8>;  // a to h, as the standard names them

uint32_t word_at(const std::byte* at) noexcept {
  uint32_t word;
  std::memcpy(&word, at, sizeof word);
  return std::endian::native == std::endian::little ? __builtin_bswap32(word) : word;
}

// The message schedule, FIPS 180-4 section 6.2.2, step 1.
std::array<uint32_t, 64> schedule_of(const std::byte* block) noexcept {
  std::array<uint32_t, 64> words;
  for (size_t i = 0; i < 16; ++i) words[i] = word_at(block + 4 * i);
  for (size_t i = 16; i < 64; ++i) {
    const auto near = words[i - 2], far = words[i - 15];
    const auto sigma1 = std::rotr(near, 17) ^ std::rotr(near, 19) ^ (near >> 10);
    const auto sigma0 = std::rotr(far, 7) ^ std::rotr(far, 18) ^ (far >> 3);
    words[i] = sigma1 + words[i - 7] + sigma0 + words[i - 16];
  }
  return words;
}

// Steps 2 to 4: 64 rounds, added to what came before.
void add_block(State& state, const std::byte* block) noexcept {
  const auto words = schedule_of(block);
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const auto sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const auto choice = (e & f) ^ (~e & g);
    const auto first = h + sum1 + choice + round_constants[i] + words[i];
    const auto sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const auto majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + sum0 + majority;
  }
  const State added = {a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < state.size(); ++i) state[i] += added[i];
}

}  // namespace

Sha256 portable_sha256(ByteView data) noexcept {
  State state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  const Blocks blocks(data);
  for (size_t i = 0; i < blocks.count(); ++i) add_block(state, blocks[i]);
  Sha256 digest;
  for (size_t i = 0; i < state.size(); ++i) {
    const auto word = word_at(reinterpret_cast<const std::byte*>(&state[i]));  // big-endian again
    std::memcpy(&digest[4 * i], &word, sizeof word);
  }
  return digest;
}

#if defined(__x86_64__)
namespace {

bool use_extensions() noexcept {
  static const bool there = has_sha_extensions();
  return there;
}

}  // namespace
#endif

Sha256 sha256(ByteView data) noexcept {
#if defined(__x86_64__)
  if (use_extensions()) return sha256_by_extensions(data);
#endif
  return portable_sha256(data);
}

std::pair<Sha256, Sha256> sha256_pair(ByteView a, ByteView b) noexcept {
#if defined(__x86_64__)
  if (use_extensions()) return sha256_pair_by_extensions(a, b);
#endif
  return {portable_sha256(a), portable_sha256(b)};
}

}  // namespace tc
