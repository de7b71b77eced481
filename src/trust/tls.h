// SPDX-License-Identifier: Apache-2.0
//
// TLS 1.3 between nodes: both sides prove their Ed25519 keys. A session works on memory only. The caller moves the
// bytes between the session and a socket. Only libthreechains_tls.so knows OpenSSL. A node loads it for its first
// encrypted connection (base/plugin.h).
//
//     Call handshake() until it returns true, then write() and read().
//     Bytes from the socket:  copy them to room(), then call received().
//     Bytes for the socket:   send to_send(), then call sent().
//
// Threads: any thread may use a context. One thread at a time may use a session.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "trust/key_pair.h"

namespace tc::trust {

enum class TlsRole : uint8_t { client, server };

class TlsSession {
 public:
  // A peer may send this many bytes before its handshake is complete. Ours has about 700.
  static constexpr size_t max_handshake_bytes = 8 * 1024;
  // A session holds back at most this many bytes of the socket: one incomplete record.
  static constexpr size_t max_held_bytes = 5 + 16384 + 256;

  virtual ~TlsSession() = default;

  // Continues the handshake. Slow, because it makes and checks a signature.
  //   true: the handshake is complete.
  //   false: more bytes of the peer must come.
  //   TC_ERR_TOO_LARGE: more than max_handshake_bytes came.
  //   TC_ERR_VERSION: the peer speaks another protocol.
  //   TC_ERR_MALFORMED, TC_ERR_NO_MEMORY.
  // An error is final. to_send() may then have an alert for the peer.
  virtual Result<bool> handshake() = 0;
  // The key that the peer proved to own. Valid once the handshake is complete.
  virtual const PublicKey& peer_key() const noexcept = 0;
  // True: the peer says that its key lasts only as long as its process.
  virtual bool is_peer_key_temporary() const noexcept = 0;

  // Memory for bytes from the socket. Empty: call read() or handshake() first.
  virtual std::span<std::byte> room() noexcept = 0;
  virtual void received(size_t count) noexcept = 0;
  // Bytes that the socket must send.
  virtual ByteView to_send() const noexcept = 0;
  virtual void sent(size_t count) noexcept = 0;

  // Encrypts into to_send(). Returns how many bytes it took. Without room for all, it takes fewer.
  virtual Result<size_t> write(ByteView plain) = 0;
  // Decrypts received records into `plain`. Returns the number of bytes, which is smaller than `plain` when no more
  // whole records have come. TC_ERR_DISCONNECTED: the peer ended its side. TC_ERR_MALFORMED: a record is damaged or not
  // the peer's.
  virtual Result<size_t> read(std::span<std::byte> plain) = 0;
  // True: read() may find more, even without further bytes of the socket.
  virtual bool has_more() const noexcept = 0;
  // Puts an end record into to_send(). Without it, the peer takes the end of the socket for a lost connection.
  virtual void end() noexcept = 0;
};

class TlsContext {
 public:
  virtual ~TlsContext() = default;
  // Cheap, because the first handshake() does the costly part. TC_ERR_NO_MEMORY.
  virtual Result<std::unique_ptr<TlsSession>> make_session(TlsRole role) = 0;
};

// Opens the plug-in. Its sessions prove `key`; OpenSSL gets no copy of it. `plugin`: path of libthreechains_tls.so;
// empty: beside this library. TC_ERR_UNSUPPORTED.
Result<std::unique_ptr<TlsContext>> open_tls(std::shared_ptr<const KeyPair> key, const std::string& plugin);

// Signs with the key of the sessions. Any thread may call it.
using Sign = std::function<SignatureBytes(ByteView message)>;

// The plug-in exports a function of this type under `tls_factory_name`. It returns null when the version differs, or
// when `error` has the reason.
inline constexpr uint32_t tls_plugin_version = 2;
inline constexpr const char* tls_plugin_name = "libthreechains_tls.so";
inline constexpr const char* tls_factory_name = "threechains_make_tls";
using TlsFactory = TlsContext* (*)(uint32_t version, const PublicKey& key, bool is_temporary, Sign sign, Error& error);

}  // namespace tc::trust
