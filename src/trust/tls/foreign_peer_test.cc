// SPDX-License-Identifier: Apache-2.0
//
// Sessions of the plug-in against peers that break the rules: other programs, and OpenSSL clients and servers with
// settings that we never use.
#include <gmock/gmock.h>

#include "trust/tls/openssl.h"
#include "trust/tls/testing/sessions.h"

namespace tc::trust {
namespace {

using ::testing::HasSubstr;

TEST_F(Sessions, bytes_that_are_no_tls_fail_the_handshake) {
  using namespace std::string_view_literals;
  for (const auto words : {"GET / HTTP/1.1\r\n\r\n"sv, "TCN1\1\1\0\0\0\0\0\0"sv, "\x16\x03\x01\0\5hello"sv}) {
    server = server_context->make_session(TlsRole::server).value();
    give(*server, std::as_bytes(std::span(words)));
    const auto result = server->handshake();
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, HasSubstr("the encrypted handshake failed"));
    EXPECT_FALSE(server->handshake()) << "an error is final";
  }
}

TEST_F(Sessions, a_hello_without_end_is_an_error_as_soon_as_it_is_too_long) {
  const unsigned char head[] = {0x16, 3, 1, 0x40, 0, 1, 1, 0xff, 0xff};  // a record of 16 KiB, a hello of 128 KiB
  give(*server, std::as_bytes(std::span(head)));
  EXPECT_EQ(server->handshake().value(), false);
  Result<bool> result = false;
  size_t sent = sizeof head;
  while (result && !server->room().empty()) {
    server->received(std::exchange(sent, 100) != 0 ? std::min<size_t>(100, server->room().size()) : 0);
    result = server->handshake();
  }
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, TC_ERR_TOO_LARGE);
}

// A peer that uses OpenSSL directly. It works on memory, too.
class AForeignPeer : public Sessions {
 protected:
  static EVP_PKEY* new_key(const char* kind) {
    return std::string_view(kind) == "EC" ? EVP_EC_gen("P-256") : EVP_PKEY_Q_keygen(nullptr, nullptr, kind);
  }
  void add_certificate(const char* kind) {
    const Openssl<EVP_PKEY> key(new_key(kind));
    const Openssl<X509> certificate(X509_new());
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 7);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_sign(certificate.get(), key.get(), std::string_view(kind) == "EC" ? EVP_sha256() : nullptr);
    SSL_CTX_use_certificate(context.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
  }
  void offer(std::string_view protocol) {
    std::string list(1, static_cast<char>(protocol.size()));
    list += protocol;
    SSL_CTX_set_alpn_protos(context.get(), reinterpret_cast<const unsigned char*>(list.data()),
                            static_cast<unsigned>(list.size()));
  }
  // Runs the handshake against `ours`, and returns its error.
  Error run(TlsSession& ours, bool foreign_is_client) {
    const Openssl<SSL> foreign(SSL_new(context.get()));
    SSL_set_bio(foreign.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    foreign_is_client ? SSL_set_connect_state(foreign.get()) : SSL_set_accept_state(foreign.get());
    for (int round = 0; round < 10; ++round) {
      (void)SSL_do_handshake(foreign.get());
      ERR_clear_error();
      const int size = BIO_read(SSL_get_wbio(foreign.get()), ours.room().data(), static_cast<int>(ours.room().size()));
      if (size > 0) ours.received(static_cast<size_t>(size));
      const auto result = ours.handshake();
      if (!result) return result.error();
      if (*result) return {TC_OK, "complete"};
      const auto bytes = ours.to_send();
      BIO_write(SSL_get_rbio(foreign.get()), bytes.data(), static_cast<int>(bytes.size()));
      ours.sent(bytes.size());
    }
    return {TC_OK, "it never ends"};
  }
  Openssl<SSL_CTX> context{SSL_CTX_new(TLS_method())};
};

TEST_F(AForeignPeer, that_does_as_we_do_is_taken) {
  add_certificate("ED25519");
  offer("threechains/1");
  EXPECT_EQ(run(*server, true).message, "complete");
}

TEST_F(AForeignPeer, without_a_certificate_is_refused) {
  offer("threechains/1");
  EXPECT_THAT(run(*server, true).message, HasSubstr("peer did not return a certificate"));
}

TEST_F(AForeignPeer, with_a_certificate_of_another_kind_of_key_is_refused) {
  add_certificate("EC");
  offer("threechains/1");
  EXPECT_NE(run(*server, true).message, "complete");
  EXPECT_THAT(run(*client, false).message, HasSubstr("the encrypted handshake failed"));
}

TEST_F(AForeignPeer, that_speaks_another_protocol_or_names_none_is_refused) {
  add_certificate("ED25519");
  EXPECT_THAT(run(*server, true).message, HasSubstr("does not speak threechains/1"));
  for (const std::string_view other : {"h2", "threechains/2", "threechains/", "threechains/11"}) {
    offer(other);
    server = server_context->make_session(TlsRole::server).value();
    EXPECT_THAT(run(*server, true).message, HasSubstr("no application protocol")) << other;
  }
}

TEST_F(AForeignPeer, that_is_a_server_and_chooses_no_protocol_is_refused) {
  add_certificate("ED25519");
  const auto why = run(*client, false);
  EXPECT_EQ(why.code, TC_ERR_VERSION);
  EXPECT_THAT(why.message, HasSubstr("does not speak threechains/1"));
}

TEST_F(AForeignPeer, that_knows_only_an_older_tls_is_refused) {
  add_certificate("ED25519");
  offer("threechains/1");
  SSL_CTX_set_max_proto_version(context.get(), TLS1_2_VERSION);
  EXPECT_THAT(run(*server, true).message, HasSubstr("unsupported protocol"));
  EXPECT_NE(run(*client, false).message, "complete");
}

TEST_F(AForeignPeer, that_has_only_chacha_is_taken) {
  add_certificate("ED25519");
  offer("threechains/1");
  SSL_CTX_set_ciphersuites(context.get(), "TLS_CHACHA20_POLY1305_SHA256");
  EXPECT_EQ(run(*server, true).message, "complete");
}

TEST_F(AForeignPeer, that_has_another_key_exchange_is_refused) {
  add_certificate("ED25519");
  offer("threechains/1");
  SSL_CTX_set1_groups_list(context.get(), "P-256");
  EXPECT_NE(run(*server, true).message, "complete");
}

TEST(ThePlugin, that_is_not_there_is_an_error_that_says_what_to_do) {
  const auto made =
      open_tls(std::make_shared<const KeyPair>(KeyPair::fresh().value()), "/nowhere/libthreechains_tls.so");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, TC_ERR_UNSUPPORTED);
  EXPECT_THAT(made.error().message, HasSubstr("install libthreechains_tls.so and OpenSSL 3"));
}

// A program that uses OpenSSL itself finds the default context unchanged.
TEST(ThePlugin, changes_nothing_of_openssl_for_the_program) {
  const auto context = context_of(KeyPair::fresh().value());
  const Openssl<SSL_CTX> own(SSL_CTX_new(TLS_method()));
  EXPECT_EQ(SSL_CTX_get_verify_mode(own.get()), SSL_VERIFY_NONE);
  EXPECT_EQ(SSL_CTX_get_num_tickets(own.get()), 2u);
  EXPECT_NE(SSL_CTX_get_session_cache_mode(own.get()), SSL_SESS_CACHE_OFF);
  EXPECT_EQ(ERR_peek_error(), 0u);
}

}  // namespace
}  // namespace tc::trust
