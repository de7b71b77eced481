// SPDX-License-Identifier: Apache-2.0
//
// Sessions of the plug-in against each other, with a relay in the middle, and against clients and servers that OpenSSL
// makes as we never would.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "trust/tls.h"
#include "trust/tls/openssl.h"

namespace tc::trust {
namespace {

using ::testing::HasSubstr;

constexpr size_t all = ~size_t{0};

std::unique_ptr<TlsContext> context_of(const KeyPair& key) { return open_tls(key, TC_TLS_PLUGIN).value(); }

Bytes patterned(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  return bytes;
}

// Moves up to `most` bytes on the way from one to the other. What has passed is kept.
size_t move(TlsSession& from, TlsSession& to, size_t most = all, Bytes* kept = nullptr) {
  const auto room = to.room();
  const size_t count = std::min({most, from.to_send().size(), room.size()});
  std::copy_n(from.to_send().data(), count, room.data());
  if (kept != nullptr) kept->insert(kept->end(), from.to_send().begin(), from.to_send().begin() + count);
  from.sent(count);
  to.received(count);
  return count;
}

void give(TlsSession& to, ByteView bytes) {
  ASSERT_LE(bytes.size(), to.room().size());
  std::ranges::copy(bytes, to.room().begin());
  to.received(bytes.size());
}

class Sessions : public testing::Test {
 protected:
  // Goes on until both are complete or one has failed. At most `step` bytes at a time.
  void shake_hands(size_t step = all) {
    for (int round = 0; round < 20'000 && error.message.empty(); ++round) {
      const auto one = client->handshake(), two = server->handshake();
      for (const auto* result : {&one, &two})
        if (!*result) error = result->error();
      if (one.value_or(false) && two.value_or(false)) return;
      move(*client, *server, step);
      move(*server, *client, step);
    }
  }
  Result<size_t> pass(TlsSession& from, TlsSession& to, ByteView plain, Bytes& into) {
    size_t received = 0;
    for (ByteView rest = plain;;) {
      TC_ASSIGN(const size_t taken, from.write(rest));
      rest = rest.subspan(taken);
      while (move(from, to) != 0) {
        TC_ASSIGN(const size_t got, to.read(std::span(into).subspan(received)));
        received += got;
      }
      if (rest.empty()) return received;
    }
  }

  const KeyPair client_key = KeyPair::fresh().value(), server_key = KeyPair::fresh().value();
  std::unique_ptr<TlsContext> client_context = context_of(client_key), server_context = context_of(server_key);
  std::unique_ptr<TlsSession> client = client_context->make_session(TlsRole::client).value(),
                              server = server_context->make_session(TlsRole::server).value();
  Error error{TC_OK, ""};
};

TEST_F(Sessions, prove_the_keys_of_both_sides_to_each_other) {
  shake_hands();
  ASSERT_EQ(error.message, "");
  EXPECT_EQ(client->peer_key(), server_key.public_key());
  EXPECT_EQ(server->peer_key(), client_key.public_key());
}

TEST_F(Sessions, shake_hands_also_when_each_byte_comes_alone) {
  shake_hands(1);
  ASSERT_EQ(error.message, "");
  EXPECT_EQ(server->peer_key(), client_key.public_key());
}

TEST_F(Sessions, pass_bytes_of_any_number_in_both_directions) {
  shake_hands();
  for (const size_t size : {1u, 15u, 16384u, 16385u, 65'536u, 300'000u}) {
    const Bytes plain = patterned(size);
    for (const bool back : {false, true}) {
      Bytes into(size + 1);
      const auto got = back ? pass(*server, *client, plain, into) : pass(*client, *server, plain, into);
      ASSERT_TRUE(got) << got.error().message;
      ASSERT_EQ(*got, size);
      EXPECT_TRUE(std::ranges::equal(plain, std::span(into).first(size)));
    }
  }
}

TEST_F(Sessions, outlive_the_contexts_that_made_them) {
  client_context.reset();
  server_context.reset();
  shake_hands();
  EXPECT_EQ(error.message, "");
}

TEST_F(Sessions, hold_back_no_more_than_one_record) {
  shake_hands();
  const Bytes plain = patterned(16384);
  ASSERT_TRUE(client->write(plain));
  const size_t sealed = client->to_send().size();
  EXPECT_LE(sealed, TlsSession::max_held_bytes);
  Bytes into(plain.size());
  move(*client, *server, sealed - 1);
  EXPECT_EQ(server->read(into).value(), 0u);
  EXPECT_FALSE(server->has_more());
  move(*client, *server);
  EXPECT_EQ(server->read(into).value(), plain.size());
}

TEST_F(Sessions, tell_that_more_is_there_when_the_reader_has_room_for_a_part) {
  shake_hands();
  ASSERT_TRUE(client->write(patterned(100)));
  move(*client, *server);
  Bytes into(60);
  EXPECT_EQ(server->read(into).value(), 60u);
  EXPECT_TRUE(server->has_more());
  EXPECT_EQ(server->read(into).value(), 40u);
  EXPECT_FALSE(server->has_more());
}

TEST_F(Sessions, an_end_that_the_peer_has_said_is_an_end_behind_the_last_bytes) {
  shake_hands();
  ASSERT_TRUE(client->write(patterned(10)));
  client->end();
  move(*client, *server);
  Bytes into(100);
  EXPECT_EQ(server->read(into).value(), 10u);
  const auto end = server->read(into);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, TC_ERR_DISCONNECTED);
  EXPECT_THAT(end.error().message, HasSubstr("it has ended"));
}

TEST_F(Sessions, read_and_write_nothing_before_the_handshake) {
  Bytes into(10);
  EXPECT_FALSE(client->write(into));
  EXPECT_FALSE(client->read(into));
  EXPECT_TRUE(client->to_send().empty());
}

// ---- A relay in the middle.

TEST_F(Sessions, any_byte_of_the_handshake_turned_on_its_way_fails_it_or_changes_nothing) {
  unsigned failed = 0, turned = 0;
  for (const bool from_server : {false, true})
    for (size_t place = 0; place < 900; ++place) {
      client = client_context->make_session(TlsRole::client).value();
      server = server_context->make_session(TlsRole::server).value();
      error.message.clear();
      size_t seen = 0;
      bool done = false;
      for (int round = 0; round < 10 && !done && error.message.empty(); ++round) {
        const auto one = client->handshake(), two = server->handshake();
        for (const auto* result : {&one, &two})
          if (!*result) error = result->error();
        done = one.value_or(false) && two.value_or(false);
        for (const bool back : {false, true}) {
          auto &from = back ? *server : *client, &to = back ? *client : *server;
          Bytes bytes(from.to_send().begin(), from.to_send().end());
          from.sent(bytes.size());
          if (back == from_server && place >= seen && place - seen < bytes.size()) {
            bytes[place - seen] ^= std::byte{0x40};
            ++turned;
          }
          if (back == from_server) seen += bytes.size();
          give(to, bytes);
        }
      }
      if (place < seen) {
        failed += done ? 0 : 1;
        if (done) {  // a byte that nobody checks, such as the version of a record
          EXPECT_EQ(client->peer_key(), server_key.public_key()) << place;
          EXPECT_EQ(server->peer_key(), client_key.public_key()) << place;
        }
      }
    }
  EXPECT_GT(turned, 1000u);
  EXPECT_GT(failed, turned - 40);
}

TEST_F(Sessions, any_byte_of_a_record_turned_is_an_error_and_never_other_bytes) {
  const Bytes plain = patterned(200);
  for (size_t place = 0;; ++place) {
    client = client_context->make_session(TlsRole::client).value();
    server = server_context->make_session(TlsRole::server).value();
    shake_hands();
    ASSERT_TRUE(client->write(plain));
    Bytes sealed(client->to_send().begin(), client->to_send().end());
    if (place == sealed.size()) break;
    sealed[place] ^= std::byte{1};
    give(*server, sealed);
    Bytes into(1000);
    const auto got = server->read(into);
    EXPECT_TRUE(!got || *got == 0) << place;  // 0: a longer record is said to come
    if (got) {
      for (int i = 0; i < 3; ++i) give(*server, sealed);
      EXPECT_FALSE(server->read(into)) << place;
    }
    EXPECT_FALSE(server->write(plain)) << place;
  }
}

TEST_F(Sessions, bytes_before_a_wrong_record_are_read_and_then_comes_the_error) {
  shake_hands();
  ASSERT_TRUE(client->write(patterned(10)));
  move(*client, *server);
  ASSERT_TRUE(client->write(patterned(10)));
  Bytes sealed(client->to_send().begin(), client->to_send().end());
  sealed.back() ^= std::byte{1};
  give(*server, sealed);
  Bytes into(100);
  EXPECT_EQ(server->read(into).value(), 10u);
  EXPECT_TRUE(server->has_more());
  const auto error = server->read(into);
  ASSERT_FALSE(error);
  EXPECT_EQ(error.error().code, TC_ERR_MALFORMED) << error.error().message;
}

TEST_F(Sessions, a_record_that_comes_twice_or_is_left_out_is_an_error) {
  for (const bool twice : {false, true}) {
    client = client_context->make_session(TlsRole::client).value();
    server = server_context->make_session(TlsRole::server).value();
    shake_hands();
    Bytes records[2], into(1000);
    for (auto& record : records) {
      ASSERT_TRUE(client->write(patterned(50)));
      record.assign(client->to_send().begin(), client->to_send().end());
      client->sent(record.size());
    }
    if (twice) {
      give(*server, records[0]);
      EXPECT_EQ(server->read(into).value(), 50u);
    }
    give(*server, records[twice ? 0 : 1]);
    EXPECT_FALSE(server->read(into));
  }
}

TEST_F(Sessions, a_recorded_handshake_cannot_be_replayed) {
  Bytes recorded;
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(client->handshake() && server->handshake());
    move(*client, *server, all, &recorded);
    move(*server, *client);
  }
  ASSERT_EQ(server->handshake().value(), true);
  const auto again = server_context->make_session(TlsRole::server).value();
  give(*again, recorded);
  const auto result = again->handshake();
  EXPECT_FALSE(result.value_or(false)) << "the server has another secret";
}

// ---- Peers that do not keep to the rules.

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

// A peer as OpenSSL makes it, on memory as well.
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
  // Runs the handshake against `ours`; its error.
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
  const auto made = open_tls(KeyPair::fresh().value(), "/nowhere/libthreechains_tls.so");
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, TC_ERR_UNSUPPORTED);
  EXPECT_THAT(made.error().message, HasSubstr("install libthreechains_tls.so and OpenSSL 3"));
}

// A program that uses OpenSSL itself finds its default context as it was.
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
