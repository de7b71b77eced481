// SPDX-License-Identifier: Apache-2.0
#include "floor/aes_gcm.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace tc::bench {

namespace {

constexpr size_t record_bytes = 16384;

const unsigned char* chars(const std::byte* bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes); }
unsigned char* chars(std::byte* bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes); }

std::unexpected<Error> failed() { return fail(TC_ERR_INTERNAL, "OpenSSL cannot encrypt by AES-128-GCM"); }

}  // namespace

void AesGcm::Free::operator()(evp_cipher_ctx_st* context) const noexcept { EVP_CIPHER_CTX_free(context); }

Result<std::unique_ptr<AesGcm>> AesGcm::create() {
  std::unique_ptr<AesGcm> made(new AesGcm);
  made->context_.reset(EVP_CIPHER_CTX_new());
  const std::array<unsigned char, 16> key{1, 2, 3};  // nothing secret is encrypted
  if (made->context_ == nullptr ||
      EVP_EncryptInit_ex(made->context_.get(), EVP_aes_128_gcm(), nullptr, key.data(), nullptr) != 1)
    return failed();
  return made;
}

Status AesGcm::seal(ByteView bytes, std::span<std::byte> into) {
  auto* const context = context_.get();
  for (size_t at = 0; at < bytes.size(); at += record_bytes) {
    const auto size = static_cast<int>(std::min(record_bytes, bytes.size() - at));
    std::array<unsigned char, 12> nonce{};
    std::memcpy(nonce.data(), &++records_, sizeof records_);
    std::array<unsigned char, 16> tag;
    int written = 0, rest = 0;
    if (EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) != 1 ||
        EVP_EncryptUpdate(context, chars(into.data()) + at, &written, chars(bytes.data()) + at, size) != 1 ||
        EVP_EncryptFinal_ex(context, chars(into.data()) + at + written, &rest) != 1 ||
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, tag.size(), tag.data()) != 1)
      return failed();
  }
  return {};
}

}  // namespace tc::bench
