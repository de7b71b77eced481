// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.h"

#include <sodium.h>

namespace tc {

Sha256 portable_sha256(ByteView data) noexcept {
  Sha256 digest;
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(digest.data()),
                     reinterpret_cast<const unsigned char*>(data.data()), data.size());
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
