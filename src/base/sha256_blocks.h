// SPDX-License-Identifier: Apache-2.0
//
// What both ways of computing SHA-256 share: the constants, and a message cut into blocks. For sha256*.cc only.
// Threads: any.
#pragma once

#include <cstring>

#include "base/sha256.h"

namespace tc::sha256_blocks {

inline constexpr size_t block_bytes = 64;

alignas(16) inline constexpr uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

// A message as blocks: those that it fills, and what ends it.
class Blocks {
 public:
  explicit Blocks(ByteView data) noexcept : data_(data), whole_(data.size() / block_bytes) {
    // What is left, a one bit, zeros, and the length in bits, big-endian: one block or two.
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

}  // namespace tc::sha256_blocks
