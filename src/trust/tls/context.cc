// SPDX-License-Identifier: Apache-2.0
//
// What the sessions of one node share: its key in a self-signed certificate, and the one form of TLS that nodes speak.
// The library context of OpenSSL is our own. So the system's configuration of OpenSSL has no effect on it, and other
// users of OpenSSL in this process do not notice it. All nodes of a process share this library context. It is never
// freed, because threads refer to it until they end.
//
// Threads: any.
#include <openssl/asn1.h>

#include <cstring>
#include <iterator>

#include "trust/tls.h"
#include "trust/tls/openssl.h"
#include "trust/tls/session.h"
#include "trust/tls/signer.h"

namespace tc::trust {

namespace {

constexpr long max_certificates_bytes = 4096;

std::unexpected<Error> failed(const char* what) {
  return fail(TC_ERR_UNSUPPORTED, "preparing encrypted connections, {}: {}", what, openssl_words());
}

// Null: OpenSSL could not make it.
OSSL_LIB_CTX* library() noexcept {
  static OSSL_LIB_CTX* const made = [] {
    auto* const begun = OSSL_LIB_CTX_new();
    if (begun == nullptr || add_signer(begun)) return begun;
    OSSL_LIB_CTX_free(begun);
    return static_cast<OSSL_LIB_CTX*>(nullptr);
  }();
  return made;
}

// The dates are fixed, so that a node without a clock can connect, too. Only the key counts.
Openssl<X509> certificate_of(const PublicKey& public_key, bool is_temporary, EVP_PKEY* key) {
  const Openssl<EVP_PKEY> in_it(EVP_PKEY_new_raw_public_key_ex(
      library(), "ED25519", nullptr, reinterpret_cast<const unsigned char*>(public_key.bytes.data()),
      public_key.bytes.size()));
  Openssl<X509> made(X509_new_ex(library(), nullptr));
  const std::string_view name = is_temporary ? name_of_temporary : "threechains";
  if (made == nullptr || in_it == nullptr) return nullptr;
  X509_NAME* const subject = X509_get_subject_name(made.get());
  const bool complete =
      X509_set_version(made.get(), X509_VERSION_3) == 1 &&
      ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1) == 1 &&
      ASN1_TIME_set_string_X509(X509_getm_notBefore(made.get()), "19700101000000Z") == 1 &&
      ASN1_TIME_set_string_X509(X509_getm_notAfter(made.get()), "99991231235959Z") == 1 &&
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.data()),
                                 static_cast<int>(name.size()), -1, 0) == 1 &&
      X509_set_issuer_name(made.get(), subject) == 1 && X509_set_pubkey(made.get(), in_it.get()) == 1 &&
      X509_sign(made.get(), key, nullptr) != 0;
  return complete ? std::move(made) : nullptr;
}

// Replaces the check of a certificate chain, because the key is the identity. The node decides after the handshake
// whether that key may connect.
int check_certificate(X509_STORE_CTX* store, void*) noexcept {
  X509* const certificate = X509_STORE_CTX_get0_cert(store);
  const EVP_PKEY* const key = certificate != nullptr ? X509_get0_pubkey(certificate) : nullptr;
  const bool is_fine = key != nullptr && EVP_PKEY_is_a(key, "ED25519") == 1;
  X509_STORE_CTX_set_error(store, is_fine ? X509_V_OK : X509_V_ERR_CERT_REJECTED);
  return is_fine ? 1 : 0;
}

int select_alpn(SSL*, const unsigned char** chosen, unsigned char* size, const unsigned char* offered,
                unsigned offered_size, void*) noexcept {
  for (unsigned at = 0; at < offered_size; at += offered[at] + 1u) {
    if (offered_size - at < sizeof alpn || std::memcmp(offered + at, alpn, sizeof alpn) != 0) continue;
    *chosen = offered + at + 1;
    *size = sizeof alpn - 1;
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

class OpensslContext final : public TlsContext {
 public:
  static Result<std::unique_ptr<OpensslContext>> create(const PublicKey& key, bool is_temporary, Sign sign);

  Result<std::unique_ptr<TlsSession>> make_session(TlsRole role) override;

 private:
  OpensslContext() = default;
  Status set_key(const PublicKey& public_key, bool is_temporary, Sign sign);
  Status set_rules();

  Openssl<SSL_CTX> context_;
};

}  // namespace

Result<std::unique_ptr<OpensslContext>> OpensslContext::create(const PublicKey& key, bool is_temporary, Sign sign) {
  // The first user of OpenSSL in a process initializes it for all. A program may rely on the system's configuration, so
  // it is loaded here; set_rules() overrides it for us. NO_ATEXIT: our threads may still use OpenSSL while the process
  // exits.
  if (OPENSSL_init_ssl(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) return failed("starting OpenSSL");
  ERR_clear_error();
  std::unique_ptr<OpensslContext> made(new OpensslContext);
  if (library() == nullptr || memory_method() == nullptr) return failed("a library context");
  made->context_.reset(SSL_CTX_new_ex(library(), nullptr, TLS_method()));
  if (made->context_ == nullptr) return failed("a context");
  TC_CHECK(made->set_rules());
  TC_CHECK(made->set_key(key, is_temporary, std::move(sign)));
  return made;
}

Status OpensslContext::set_key(const PublicKey& public_key, bool is_temporary, Sign sign) {
  const auto key = make_signing_key(library(), public_key, std::move(sign));
  if (key == nullptr) return failed("the key");
  const auto certificate = certificate_of(public_key, is_temporary, key.get());
  if (certificate == nullptr) return failed("the certificate");
  if (SSL_CTX_use_certificate(context_.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context_.get(), key.get()) != 1 || SSL_CTX_check_private_key(context_.get()) != 1)
    return failed("key and certificate");
  return {};
}

// Sets everything that matters, because the system's configuration may have changed any default.
Status OpensslContext::set_rules() {
  SSL_CTX* const context = context_.get();
  (void)SSL_CTX_clear_options(context, SSL_CTX_get_options(context));
  (void)SSL_CTX_set_options(
      context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_security_level(context, 1);
  if (SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256") != 1 ||
      SSL_CTX_set1_groups_list(context, "X25519") != 1 || SSL_CTX_set1_sigalgs_list(context, "ed25519") != 1 ||
      SSL_CTX_set1_client_sigalgs_list(context, "ed25519") != 1)
    return failed("TLS 1.3 with X25519 and Ed25519");
  // Each session proves the key anew: nothing is resumed, and nothing is sent before the proof.
  (void)SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  if (SSL_CTX_set_num_tickets(context, 0) != 1 || SSL_CTX_set_max_early_data(context, 0) != 1)
    return failed("no tickets");
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, &check_certificate, nullptr);
  SSL_CTX_set_max_cert_list(context, max_certificates_bytes);
  SSL_CTX_set_quiet_shutdown(context, 0);
  SSL_CTX_set_read_ahead(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_set_alpn_protos(context, alpn, sizeof alpn) != 0) return failed("ALPN");  // 0: it worked
  SSL_CTX_set_alpn_select_cb(context, &select_alpn, nullptr);
  return {};
}

Result<std::unique_ptr<TlsSession>> OpensslContext::make_session(TlsRole role) {
  try {
    return std::make_unique<OpensslSession>(context_.get(), role);
  } catch (const std::bad_alloc&) {
    return fail(TC_ERR_NO_MEMORY, "there is no memory for an encrypted connection");
  }
}

}  // namespace tc::trust

// What libthreechains_tls.so exports (trust/tls.h).
extern "C" __attribute__((visibility("default"))) tc::trust::TlsContext* threechains_make_tls(
    uint32_t version, const tc::trust::PublicKey& key, bool is_temporary, tc::trust::Sign sign, tc::Error& error) {
  if (version != tc::trust::tls_plugin_version) return nullptr;
  try {
    auto made = tc::trust::OpensslContext::create(key, is_temporary, std::move(sign));
    if (made) return made->release();
    error = made.error();
  } catch (const std::exception& problem) {
    error = {TC_ERR_INTERNAL, problem.what()};
  }
  return nullptr;
}
