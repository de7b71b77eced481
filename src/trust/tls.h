// SPDX-License-Identifier: Apache-2.0
//
// TLS 1.3 between nodes: both sides prove their Ed25519 keys. A session works on memory only; its user moves the bytes
// between it and a socket. libthreechains_tls.so implements it: the only part of a node that knows OpenSSL. It is loaded
// for the first encrypted connection (base/plugin.h).
//
//     handshake() until it says true, then write() and read();
//     bytes of the socket:    copy them to room(), then call received()
//     bytes for the socket:   send to_send(), then call sent()
//
// Thread: a context is used by any thread. A session is used by one thread at a time, and may move between them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "trust/key_pair.h"

namespace tc::trust {

enum class TlsRole : uint8_t { client, server };

class TlsSession {
 public:
  // What a peer may send before its handshake is complete. Ours are some 700 bytes.
  static constexpr size_t max_handshake_bytes = 8 * 1024;
  // Bytes of the socket that a session may hold back at most: a record of which a part has come.
  static constexpr size_t max_held_bytes = 5 + 16384 + 256;

  virtual ~TlsSession() = default;

  // Goes on with the handshake. True: it is complete. False: more bytes of the peer must come. An error is final, but
  // to_send() may have an alert that tells the peer. Slow: a signature and its check. TC_ERR_TOO_LARGE: more than
  // max_handshake_bytes came. TC_ERR_VERSION: the peer speaks another protocol. TC_ERR_MALFORMED. TC_ERR_NO_MEMORY.
  virtual Result<bool> handshake() = 0;
  // The key that the peer has proved to own; once the handshake is complete.
  virtual const PublicKey& peer_key() const noexcept = 0;
  // What the peer says of that key: it lasts only as long as its process.
  virtual bool is_peer_key_temporary() const noexcept = 0;

  // Where bytes of the socket go. Empty: read() or handshake() first.
  virtual std::span<std::byte> room() noexcept = 0;
  virtual void received(size_t count) noexcept = 0;
  // Bytes for the socket.
  virtual ByteView to_send() const noexcept = 0;
  virtual void sent(size_t count) noexcept = 0;

  // Encrypts into to_send(). Returns how many bytes were taken: fewer than all when there is room for no more.
  virtual Result<size_t> write(ByteView plain) = 0;
  // Decrypts what was received. Returns how many bytes there are: fewer than `plain` has room for when no more have come
  // whole. TC_ERR_DISCONNECTED: the peer has ended its side. TC_ERR_MALFORMED: a record is not the peer's, or not whole.
  virtual Result<size_t> read(std::span<std::byte> plain) = 0;
  // May read() find more without further bytes of the socket?
  virtual bool has_more() const noexcept = 0;
  // Tells the peer, by to_send(), that no more is written. Without this, the end of the socket is a loss.
  virtual void end() noexcept = 0;
};

class TlsContext {
 public:
  virtual ~TlsContext() = default;
  // Cheap: what costs time is done by the first handshake(). TC_ERR_NO_MEMORY.
  virtual Result<std::unique_ptr<TlsSession>> make_session(TlsRole role) = 0;
};

// Sessions that prove `key`, of which OpenSSL gets no copy. `plugin`: path of libthreechains_tls.so; empty: beside this
// library. TC_ERR_UNSUPPORTED.
Result<std::unique_ptr<TlsContext>> open_tls(std::shared_ptr<const KeyPair> key, const std::string& plugin);

// Ed25519 with the key of the sessions, in memory of its own. Any thread.
using Sign = std::function<SignatureBytes(ByteView message)>;

// What the plug-in exports under `tls_factory_name`. Null: the version differs, or `error` has the reason.
inline constexpr uint32_t tls_plugin_version = 2;
inline constexpr const char* tls_plugin_name = "libthreechains_tls.so";
inline constexpr const char* tls_factory_name = "threechains_make_tls";
using TlsFactory = TlsContext* (*)(uint32_t version, const PublicKey& key, bool is_temporary, Sign sign, Error& error);

}  // namespace tc::trust
