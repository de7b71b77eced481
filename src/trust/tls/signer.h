// SPDX-License-Identifier: Apache-2.0
//
// A private key that OpenSSL signs with and never holds: a provider of our own, in our library context, asks whoever does
// hold it. OpenSSL's copy would lie on the ordinary heap, in every core dump.
//
// Thread: any.
#pragma once

#include "trust/tls.h"
#include "trust/tls/openssl.h"

namespace tc::trust {

// Once for a library context, before anything else of it is used. It then has OpenSSL's own provider `default`, and ours.
bool add_signer(OSSL_LIB_CTX* library) noexcept;

// Null: OpenSSL's queue of errors has the reason. `sign` lives as long as the key.
Openssl<EVP_PKEY> make_signing_key(OSSL_LIB_CTX* library, const PublicKey& key, Sign sign);

}  // namespace tc::trust
