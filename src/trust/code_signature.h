// SPDX-License-Identifier: Apache-2.0
//
// Signatures of code: Ed25519 over a context string and the content id. The content id covers every slice of a bundle,
// and so does the signature.
//
// Threads: any.
#pragma once

#include "trust/key_pair.h"
#include "wire/bundle.h"

namespace tc::trust {

// Signs the bundle and every ifunc that is bundled with it. The content id does not change. Signing twice with one key
// has no effect. TC_ERR_LIMIT: the bundle has CodeSignature::most signatures already.
Status sign_bundle(Bundle& bundle, const KeyPair& key);

// True: this signature of the bundle is right, and covers the whole bundle.
bool is_valid(const CodeSignature& signature, const Bundle& bundle) noexcept;
// The keys that signed this bundle, in the bundle's order. A wrong signature does not count.
std::vector<PublicKey> signers_of(const Bundle& bundle);
// True: `key` signed the whole bundle.
bool is_signed_by(const Bundle& bundle, const PublicKey& key) noexcept;

}  // namespace tc::trust
