// SPDX-License-Identifier: Apache-2.0
//
// The identity of a node or an author: an Ed25519 public key. Its text is "ed25519:" and 43 characters, short enough to
// be shown and compared as it is: there is no separate fingerprint.
//
// Thread: any; plain values.
#pragma once

#include <array>
#include <compare>
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

}  // namespace tc::trust
