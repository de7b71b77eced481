// SPDX-License-Identifier: Apache-2.0
//
// What a peer can send to a server's session: before the handshake, into the middle of one, and after it. The first byte
// says which. The oracle: foreign bytes never complete a handshake, and nothing is read that the true peer has not
// written.
#include <algorithm>

#include "read_frames.h"
#include "trust/tls.h"

namespace {

using namespace tc;         // NOLINT
using namespace tc::trust;  // NOLINT

TlsContext& context() {
  static const auto made = [] {
    std::array<std::byte, KeyPair::seed_bytes> seed{};
    return open_tls(std::make_shared<const KeyPair>(KeyPair::from_seed(seed).value()), TC_TLS_PLUGIN).value();
  }();
  return *made;
}

// As a socket would, as far as there is room.
void give(TlsSession& to, ByteView bytes) {
  const auto room = to.room();
  const size_t count = std::min(room.size(), bytes.size());
  std::ranges::copy(bytes.first(count), room.begin());
  to.received(count);
}

Bytes take(TlsSession& from) {
  Bytes bytes(from.to_send().begin(), from.to_send().end());
  from.sent(bytes.size());
  return bytes;
}

// With `bytes` laid over the client's messages, one of them.
void try_handshake(ByteView bytes, bool over_hello) {
  const auto client = context().make_session(TlsRole::client).value(),
             server = context().make_session(TlsRole::server).value();
  bool is_complete = false, has_changed = false;
  for (int round = 0; round < 3 && !is_complete; ++round) {
    if (!client->handshake()) return;
    Bytes message = take(*client);
    if (round == (over_hello ? 0 : 1))
      for (size_t i = 0; i < std::min(message.size(), bytes.size()); ++i) {
        has_changed |= bytes[i] != std::byte{} && i > 2;  // nobody checks the version of a record
        message[i] ^= bytes[i];
      }
    give(*server, message);
    const auto result = server->handshake();
    if (!result) return;
    is_complete = *result;
    give(*client, take(*server));
  }
  fuzz::expect(!is_complete || !has_changed);
}

void try_records(ByteView bytes) {
  const auto client = context().make_session(TlsRole::client).value(),
             server = context().make_session(TlsRole::server).value();
  for (int round = 0; round < 3; ++round) {
    fuzz::expect(client->handshake().has_value());
    give(*server, take(*client));
    fuzz::expect(server->handshake().has_value());
    give(*client, take(*server));
  }
  give(*server, bytes);
  std::array<std::byte, 4096> plain;
  const auto got = server->read(plain);
  fuzz::expect(!got || *got == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto bytes = ByteView(reinterpret_cast<const std::byte*>(data), size).subspan(1);
  if (data[0] % 4 == 0) {
    const auto server = context().make_session(TlsRole::server).value();
    give(*server, bytes);
    fuzz::expect(!server->handshake().value_or(false));
  } else if (data[0] % 4 == 1) {
    try_records(bytes);
  } else {
    try_handshake(bytes, data[0] % 4 == 2);
  }
  return 0;
}
