// SPDX-License-Identifier: Apache-2.0
#include "trust/key_pair.h"

#include <sodium.h>

#include "base/random.h"

namespace tc::trust {

namespace {

unsigned char* chars(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }
const unsigned char* chars(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }

}  // namespace

void KeyPair::Wipe::operator()(std::byte* secret) const noexcept { sodium_free(secret); }

Result<KeyPair> KeyPair::from_seed(std::span<const std::byte, seed_bytes> seed) {
  KeyPair made;
  if (sodium_init() >= 0)
    made.secret_.reset(static_cast<std::byte*>(sodium_malloc(crypto_sign_ed25519_SECRETKEYBYTES)));
  if (made.secret_ == nullptr) return fail(TC_ERR_NO_MEMORY, "there is no memory for a private key");
  crypto_sign_ed25519_seed_keypair(chars(made.public_key_.bytes.data()), chars(made.secret_.get()), chars(seed.data()));
  return made;
}

Result<KeyPair> KeyPair::fresh() {
  std::array<std::byte, seed_bytes> seed;
  random_bytes(seed);
  auto made = from_seed(seed);
  sodium_memzero(seed.data(), seed.size());
  if (made) made->is_temporary_ = true;
  return made;
}

std::span<const std::byte, KeyPair::seed_bytes> KeyPair::seed() const noexcept {
  return std::span<const std::byte, seed_bytes>(secret_.get(), seed_bytes);
}

SignatureBytes KeyPair::sign(ByteView message) const noexcept {
  SignatureBytes signature;
  crypto_sign_ed25519_detached(chars(signature.data()), nullptr, chars(message.data()), message.size(),
                               chars(secret_.get()));
  return signature;
}

bool verify(const PublicKey& key, ByteView message, const SignatureBytes& signature) noexcept {
  return crypto_sign_ed25519_verify_detached(chars(signature.data()), chars(message.data()), message.size(),
                                             chars(key.bytes.data())) == 0;
}

}  // namespace tc::trust
