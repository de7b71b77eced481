// SPDX-License-Identifier: Apache-2.0
//
// Ed25519 keys. A public key is the identity of a node or of an author. Its text is "ed25519:" and 43 characters. That
// is short enough to show and compare as it is, so there is no separate fingerprint.
//
// Threads: any; keys never change.
#pragma once

#include <array>
#include <compare>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tc::trust {

struct PublicKey {
  std::array<std::byte, 32> bytes{};

  std::string text() const;
  // TC_ERR_INVALID: not "ed25519:" and 43 characters of URL-safe base64.
  static Result<PublicKey> parse(std::string_view text);

  auto operator<=>(const PublicKey&) const = default;
};

using SignatureBytes = std::array<std::byte, 64>;

// A private key with its public half. The private bytes lie in memory of their own, which the system neither swaps nor
// dumps. The destructor wipes them.
class KeyPair {
 public:
  static constexpr size_t seed_bytes = 32;

  // Makes a new key from the system's random bytes. TC_ERR_NO_MEMORY.
  static Result<KeyPair> fresh();
  // Makes the key that has this seed (seed()). TC_ERR_NO_MEMORY.
  static Result<KeyPair> from_seed(std::span<const std::byte, seed_bytes> seed);

  const PublicKey& public_key() const noexcept { return public_key_; }
  // True: this process made the key for itself, with fresh(), and it ends with the process. Other nodes do not remember
  // it.
  bool is_temporary() const noexcept { return is_temporary_; }
  // The secret: key files and TLS need it. The caller wipes its copies.
  std::span<const std::byte, seed_bytes> seed() const noexcept;
  // The Ed25519 signature (RFC 8032) of `message`.
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

// True: `signature` is the signature of `message` by `key`.
bool verify(const PublicKey& key, ByteView message, const SignatureBytes& signature) noexcept;

// ---- Keys as text: URL-safe base64 without padding. Its time does not depend on the bytes.

std::string to_base64(ByteView bytes);
// Fills `bytes`. False: `text` is not the text of exactly that number of bytes.
bool from_base64(std::string_view text, std::span<std::byte> bytes) noexcept;

}  // namespace tc::trust
