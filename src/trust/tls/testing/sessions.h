// SPDX-License-Identifier: Apache-2.0
//
// For tests: two sessions of the plug-in, and the bytes between them.
//
// Thread: the test's.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "trust/tls.h"

namespace tc::trust {

inline constexpr size_t all = ~size_t{0};

inline std::unique_ptr<TlsContext> context_of(const KeyPair& key) {
  return open_tls(std::make_shared<const KeyPair>(KeyPair::from_seed(key.seed()).value()), TC_TLS_PLUGIN).value();
}

inline Bytes patterned(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + (i >> 8));
  return bytes;
}

// Moves up to `most` bytes from one session to the other, and records them.
inline size_t move(TlsSession& from, TlsSession& to, size_t most = all, Bytes* kept = nullptr) {
  const auto room = to.room();
  const size_t count = std::min({most, from.to_send().size(), room.size()});
  std::copy_n(from.to_send().data(), count, room.data());
  if (kept != nullptr) kept->insert(kept->end(), from.to_send().begin(), from.to_send().begin() + count);
  from.sent(count);
  to.received(count);
  return count;
}

inline void give(TlsSession& to, ByteView bytes) {
  ASSERT_LE(bytes.size(), to.room().size());
  std::ranges::copy(bytes, to.room().begin());
  to.received(bytes.size());
}

class Sessions : public testing::Test {
 protected:
  // Runs both handshakes until both are complete or one has failed. Moves at most `step` bytes at a time.
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

}  // namespace tc::trust
