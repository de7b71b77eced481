// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 (FIPS 180-4) by x86-64's SHA extensions. The CPU keeps the eight working variables in two registers, as
// ABEF and CDGH, runs two rounds by one instruction and helps with the message schedule.
#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>

#include <algorithm>

#include "base/sha256_blocks.h"

namespace tc {

namespace {

using sha256_blocks::Blocks;
using sha256_blocks::round_constants;

struct State {
  __m128i abef, cdgh;
};

#define TC_SHA __attribute__((target("sha,sse4.1,ssse3")))

TC_SHA State first_state() noexcept {
  return {_mm_set_epi32(0x6a09e667, static_cast<int>(0xbb67ae85), 0x510e527f, static_cast<int>(0x9b05688c)),
          _mm_set_epi32(0x3c6ef372, static_cast<int>(0xa54ff53a), 0x1f83d9ab, 0x5be0cd19)};
}

// What stands in registers during one block.
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

[[gnu::always_inline]] TC_SHA inline void add(State& state, const Rounds& r) noexcept {
  state.abef = _mm_add_epi32(state.abef, r.abef);
  state.cdgh = _mm_add_epi32(state.cdgh, r.cdgh);
}

TC_SHA void add_block(State& state, const std::byte* block) noexcept {
  Rounds r{{}, state.abef, state.cdgh};
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) four_rounds(r, block, i);
  add(state, r);
}

// A block of each of two messages. Each round waits for the one before, which leaves the CPU time for the other's.
TC_SHA void add_two_blocks(State& a, const std::byte* block_a, State& b, const std::byte* block_b) noexcept {
  Rounds ra{{}, a.abef, a.cdgh}, rb{{}, b.abef, b.cdgh};
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) {
    four_rounds(ra, block_a, i);
    four_rounds(rb, block_b, i);
  }
  add(a, ra);
  add(b, rb);
}

TC_SHA Sha256 digest_of(const State& state) noexcept {
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

}  // namespace tc

#endif
