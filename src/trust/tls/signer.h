// SPDX-License-Identifier: Apache-2.0
//
// Lets OpenSSL sign with a private key that it does not hold. OpenSSL would keep its copy of the key on the ordinary
// heap, and so in every core dump. Instead, a provider of our own, in our own library context, calls `sign`.
//
// Threads: any.
#pragma once

#include "trust/tls.h"
#include "trust/tls/openssl.h"

namespace tc::trust {

// Call once for a library context, before any other use of it. The context then has OpenSSL's provider `default` and
// ours.
bool add_signer(OSSL_LIB_CTX* library) noexcept;

// `sign` lives as long as the key. Null: OpenSSL's queue of errors has the reason.
Openssl<EVP_PKEY> make_signing_key(OSSL_LIB_CTX* library, const PublicKey& key, Sign sign);

}  // namespace tc::trust
