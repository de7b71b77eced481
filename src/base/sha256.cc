// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cstring>

namespace tc {

namespace {

constexpr size_t block_bytes = 64;

alignas(16) constexpr uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// A message as blocks: those that it fills, then one or two that end it.
class Blocks {
 public:
  explicit Blocks(ByteView data) noexcept : data_(data), whole_(data.size() / block_bytes) {
    // The end is the rest of the message, a one bit, zeros, and the length in bits, big-endian.
    const size_t left = data.size() % block_bytes;
    if (left != 0) std::memcpy(last_, data.data() + whole_ * block_bytes, left);
    last_[left] = std::byte{0x80};
    const size_t end = left + 9 <= block_bytes ? block_bytes : 2 * block_bytes;
    const uint64_t bits = __builtin_bswap64(uint64_t{data.size()} * 8);
    std::memcpy(last_ + end - sizeof bits, &bits, sizeof bits);
    count_ = whole_ + end / block_bytes;
  }
  size_t count() const noexcept { return count_; }
  const std::byte* operator[](size_t block) const noexcept {
    return block < whole_ ? data_.data() + block * block_bytes : last_ + (block - whole_) * block_bytes;
  }

 private:
  ByteView data_;
  size_t whole_, count_;
  alignas(16) std::byte last_[2 * block_bytes] = {};
};

// ---- For any CPU.

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
// ---- With x86-64's SHA extensions.

// The CPU keeps the eight working variables in two registers, as ABEF and CDGH. One instruction runs two rounds, and
// others help with the message schedule.
namespace {

struct PackedState {
  __m128i abef, cdgh;
};

#define TC_SHA __attribute__((target("sha,sse4.1,ssse3")))

TC_SHA PackedState first_state() noexcept {
  return {_mm_set_epi32(0x6a09e667, static_cast<int>(0xbb67ae85), 0x510e527f, static_cast<int>(0x9b05688c)),
          _mm_set_epi32(0x3c6ef372, static_cast<int>(0xa54ff53a), 0x1f83d9ab, 0x5be0cd19)};
}

// The registers of one block.
struct Rounds {
  __m128i words[4];
  __m128i abef, cdgh;
};

// Four of the 64 rounds.
[[gnu::always_inline]] TC_SHA inline void four_rounds(Rounds& r, const std::byte* block, int i) noexcept {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto& now = r.words[i % 4];
  if (i < 4) {
    now = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i), big_endian);
  } else {
    const auto before = r.words[(i + 3) % 4];
    const auto sum = _mm_add_epi32(_mm_sha256msg1_epu32(now, r.words[(i + 1) % 4]),
                                   _mm_alignr_epi8(before, r.words[(i + 2) % 4], 4));
    now = _mm_sha256msg2_epu32(sum, before);
  }
  const auto input = _mm_add_epi32(now, _mm_load_si128(reinterpret_cast<const __m128i*>(round_constants) + i));
  r.cdgh = _mm_sha256rnds2_epu32(r.cdgh, r.abef, input);
  r.abef = _mm_sha256rnds2_epu32(r.abef, r.cdgh, _mm_shuffle_epi32(input, 0x0e));
}

[[gnu::always_inline]] TC_SHA inline void add(PackedState& state, const Rounds& r) noexcept {
  state.abef = _mm_add_epi32(state.abef, r.abef);
  state.cdgh = _mm_add_epi32(state.cdgh, r.cdgh);
}

TC_SHA void add_block(PackedState& state, const std::byte* block) noexcept {
  Rounds r{{}, state.abef, state.cdgh};
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) four_rounds(r, block, i);
  add(state, r);
}

// A block of each of two messages. Each round waits for the one before, which leaves the CPU time for the other's.
TC_SHA void add_two_blocks(PackedState& a, const std::byte* block_a, PackedState& b,
                           const std::byte* block_b) noexcept {
  Rounds ra{{}, a.abef, a.cdgh}, rb{{}, b.abef, b.cdgh};
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    four_rounds(ra, block_a, i);
    four_rounds(rb, block_b, i);
  }
  add(a, ra);
  add(b, rb);
}

TC_SHA Sha256 digest_of(const PackedState& state) noexcept {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto feba = _mm_shuffle_epi32(state.abef, 0x1b);
  const auto dchg = _mm_shuffle_epi32(state.cdgh, 0xb1);
  const auto abcd = _mm_blend_epi16(feba, dchg, 0xf0);
  const auto efgh = _mm_alignr_epi8(dchg, feba, 8);
  Sha256 digest;
  auto* const out = reinterpret_cast<__m128i*>(digest.data());
  _mm_storeu_si128(out, _mm_shuffle_epi8(abcd, big_endian));
  _mm_storeu_si128(out + 1, _mm_shuffle_epi8(efgh, big_endian));
  return digest;
}

}  // namespace

bool has_sha_extensions() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & bit_SSE4_1) == 0 || (c & bit_SSSE3) == 0) return false;
  constexpr unsigned sha = 1u << 29;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & sha) != 0;
}

TC_SHA Sha256 sha256_by_extensions(ByteView data) noexcept {
  const Blocks blocks(data);
  auto state = first_state();
  for (size_t i = 0; i < blocks.count(); ++i) add_block(state, blocks[i]);
  return digest_of(state);
}

TC_SHA std::pair<Sha256, Sha256> sha256_pair_by_extensions(ByteView a, ByteView b) noexcept {
  const Blocks of_a(a), of_b(b);
  auto state_a = first_state(), state_b = first_state();
  const size_t common = std::min(of_a.count(), of_b.count());
  for (size_t i = 0; i < common; ++i) add_two_blocks(state_a, of_a[i], state_b, of_b[i]);
  for (size_t i = common; i < of_a.count(); ++i) add_block(state_a, of_a[i]);
  for (size_t i = common; i < of_b.count(); ++i) add_block(state_b, of_b[i]);
  return {digest_of(state_a), digest_of(state_b)};
}

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
