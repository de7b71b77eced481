// SPDX-License-Identifier: Apache-2.0
//
// A private key with its public half. The private bytes lie in memory of their own, which is not swapped or dumped, and
// are wiped when the key goes.
//
// Thread: any; it never changes.
#pragma once

#include <memory>

#include "trust/public_key.h"

namespace tc::trust {

using SignatureBytes = std::array<std::byte, 64>;

class KeyPair {
 public:
  static constexpr size_t seed_bytes = 32;

  // A new one, from the system's random bytes. TC_ERR_NO_MEMORY.
  static Result<KeyPair> fresh();
  // The one that was made from this seed (seed()). TC_ERR_NO_MEMORY.
  static Result<KeyPair> from_seed(std::span<const std::byte, seed_bytes> seed);

  const PublicKey& public_key() const noexcept { return public_key_; }
  // Was it made by this process, for itself? Others cannot recognise it, so they do not remember it.
  bool is_temporary() const noexcept { return is_temporary_; }
  // What a file keeps, and what TLS needs. Wipe copies of it.
  std::span<const std::byte, seed_bytes> seed() const noexcept;
  // Ed25519 (RFC 8032) over `message`.
  SignatureBytes sign(ByteView message) const noexcept;

 private:
  struct Wipe {
    void operator()(std::byte* secret) const noexcept;
  };
  KeyPair() = default;

  PublicKey public_key_;
  bool is_temporary_ = false;
  std::unique_ptr<std::byte[], Wipe> secret_;  // seed and public key, as libsodium keeps them
};

// Is it the signature of `message` by `key`?
bool verify(const PublicKey& key, ByteView message, const SignatureBytes& signature) noexcept;

}  // namespace tc::trust
