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

Sha256 sha256(ByteView data) noexcept {
#if defined(__x86_64__)
  static const bool by_extensions = has_sha_extensions();
  if (by_extensions) return sha256_by_extensions(data);
#endif
  return portable_sha256(data);
}

}  // namespace tc
