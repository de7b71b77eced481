// SPDX-License-Identifier: Apache-2.0
//
// Signatures of code: Ed25519 over a context string and the content id, so one signature covers every slice of a bundle.
//
// Thread: any.
#pragma once

#include "trust/key_pair.h"
#include "wire/bundle.h"

namespace tc::trust {

// Signs the bundle and every ifunc that is bundled with it. Its content id stays. Signing twice with one key changes
// nothing. TC_ERR_LIMIT: it has CodeSignature::most already.
Status sign_bundle(Bundle& bundle, const KeyPair& key);

// Does that signature, one of the bundle's, hold for the whole bundle?
bool is_valid(const CodeSignature& signature, const Bundle& bundle) noexcept;
// The keys whose signatures of this bundle are valid, in the bundle's order. One that is wrong is left out.
std::vector<PublicKey> signers_of(const Bundle& bundle);
// Does that key's signature cover the bundle?
bool is_signed_by(const Bundle& bundle, const PublicKey& key) noexcept;

}  // namespace tc::trust
