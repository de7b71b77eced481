// SPDX-License-Identifier: Apache-2.0
//
// Sessions of the plug-in with each other, also with a relay in the middle that changes the bytes.
#include <gmock/gmock.h>

#include "trust/tls/testing/sessions.h"

namespace tc::trust {
namespace {

using ::testing::HasSubstr;

TEST_F(Sessions, prove_the_keys_of_both_sides_to_each_other) {
  shake_hands();
  ASSERT_EQ(error.message, "");
  EXPECT_EQ(client->peer_key(), server_key.public_key());
  EXPECT_EQ(server->peer_key(), client_key.public_key());
}

TEST_F(Sessions, tell_of_a_key_that_lasts_only_as_long_as_its_process) {
  EXPECT_TRUE(KeyPair::fresh()->is_temporary());
  const auto temporary = open_tls(std::make_shared<const KeyPair>(KeyPair::fresh().value()), TC_TLS_PLUGIN).value();
  client = temporary->make_session(TlsRole::client).value();
  shake_hands();
  ASSERT_EQ(error.message, "");
  EXPECT_TRUE(server->is_peer_key_temporary());
  EXPECT_FALSE(client->is_peer_key_temporary());
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

TEST_F(Sessions, add_22_bytes_to_each_record_and_send_nothing_else) {
  shake_hands();
  ASSERT_EQ(error.message, "");
  Bytes into(100);
  for (auto* const from : {client.get(), server.get()}) {
    auto& to = from == client.get() ? *server : *client;
    move(*from, to);  // what belongs to the handshake
    for (size_t size = 1; size <= into.size(); ++size) {
      ASSERT_EQ(from->write(patterned(size)).value(), size);
      EXPECT_EQ(from->to_send().size(), size + 22);
      move(*from, to);
      EXPECT_EQ(to.read(into).value(), size);
    }
  }
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

}  // namespace
}  // namespace tc::trust
