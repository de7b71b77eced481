// SPDX-License-Identifier: Apache-2.0
//
// Smart pointers to OpenSSL's objects, and its error reasons as text.
//
// Threads: any. Each thread has its own queue of OpenSSL errors.
#pragma once

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

namespace tc::trust {

struct FreeOpenssl {
  void operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }
  void operator()(SSL* session) const noexcept { SSL_free(session); }
  void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const noexcept { X509_free(certificate); }
};
template <class T>
using Openssl = std::unique_ptr<T, FreeOpenssl>;

// The name in the certificate of a key that lasts only as long as its process. All other certificates have
// "threechains".
inline constexpr std::string_view name_of_temporary = "threechains temporary";

// The reason of the last failure, for example "wrong version number". Empties the queue.
inline std::string openssl_words() {
  const unsigned long first = ERR_peek_error();
  const char* const reason = ERR_reason_error_string(first);
  ERR_clear_error();
  return reason != nullptr ? reason : "no reason is known";
}

}  // namespace tc::trust
