// SPDX-License-Identifier: Apache-2.0
//
// For tests only: keys that are the same in every run.
#pragma once

#include "trust/key_pair.h"

namespace tc::trust::testing {

inline KeyPair key_pair(unsigned char fill) {
  std::array<std::byte, KeyPair::seed_bytes> seed;
  seed.fill(std::byte{fill});
  return KeyPair::from_seed(seed).value();
}

inline PublicKey public_key(unsigned char fill) { return key_pair(fill).public_key(); }

}  // namespace tc::trust::testing
