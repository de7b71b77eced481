// SPDX-License-Identifier: Apache-2.0
#include "trust/public_key.h"

#include "trust/base64.h"

namespace tc::trust {

namespace {

constexpr std::string_view prefix = "ed25519:";

}  // namespace

std::string PublicKey::text() const { return std::string(prefix) + to_base64(bytes); }

Result<PublicKey> PublicKey::parse(std::string_view text) {
  PublicKey key;
  if (text.starts_with(prefix) && from_base64(text.substr(prefix.size()), key.bytes)) return key;
  return fail(TC_ERR_INVALID, "'{}' is no public key: one is '{}' and 43 characters", text.substr(0, 80), prefix);
}

}  // namespace tc::trust
