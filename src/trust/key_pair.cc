// SPDX-License-Identifier: Apache-2.0
#include "trust/key_pair.h"

#include <sodium.h>

#include <algorithm>

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

// ---- Public keys

namespace {

constexpr std::string_view prefix = "ed25519:";

}  // namespace

std::string PublicKey::text() const { return std::string(prefix) + to_base64(bytes); }

Result<PublicKey> PublicKey::parse(std::string_view text) {
  PublicKey key;
  if (text.starts_with(prefix) && from_base64(text.substr(prefix.size()), key.bytes)) return key;
  return fail(TC_ERR_INVALID, "'{}' is no public key: one is '{}' and 43 characters", text.substr(0, 80), prefix);
}

// ---- Keys as text

namespace {

constexpr int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;

}  // namespace

std::string to_base64(ByteView bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), variant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    variant);
  text.pop_back();  // the zero that ends it
  return text;
}

bool from_base64(std::string_view text, std::span<std::byte> bytes) noexcept {
  // libsodium 1.0.18 accepts some bytes from 0x80 on as letters of the alphabet.
  if (!std::ranges::all_of(text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80; })) return false;
  size_t size = 0;
  const char* end = nullptr;
  return sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), text.size(),
                           nullptr, &size, &end, variant) == 0 &&
         size == bytes.size() && end == text.data() + text.size();
}

}  // namespace tc::trust
