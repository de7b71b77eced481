// SPDX-License-Identifier: Apache-2.0
//
// A TLS session: OpenSSL between two buffers. It may outlive the context that made it.
//
// Thread: one at a time may use a session.
#pragma once

#include <optional>

#include "trust/tls.h"
#include "trust/tls/openssl.h"

namespace tc::trust {

// A queue of bytes. It never moves them while there is room behind them.
class SessionBuffer {
 public:
  // Allocates. Keeps the bytes that it holds.
  void resize(size_t capacity);
  std::span<std::byte> room() noexcept { return {memory_.get() + end_, capacity_ - end_}; }
  void added(size_t count) noexcept { end_ += count; }
  std::span<const std::byte> held() const noexcept { return {memory_.get() + begin_, end_ - begin_}; }
  void taken(size_t count) noexcept {
    begin_ += count;
    if (begin_ == end_) begin_ = end_ = 0;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  size_t capacity_ = 0, begin_ = 0, end_ = 0;
};

// The protocol of nodes in the form of ALPN.
inline constexpr unsigned char alpn[] = {13, 't', 'h', 'r', 'e', 'e', 'c', 'h', 'a', 'i', 'n', 's', '/', '1'};

class OpensslSession final : public TlsSession {
 public:
  // Keeps a reference to the context. Throws std::bad_alloc.
  OpensslSession(SSL_CTX* context, TlsRole role);

  Result<bool> handshake() override;
  const PublicKey& peer_key() const noexcept override { return peer_key_; }
  bool is_peer_key_temporary() const noexcept override { return is_peer_key_temporary_; }
  std::span<std::byte> room() noexcept override;
  void received(size_t count) noexcept override;
  ByteView to_send() const noexcept override { return out_.held(); }
  void sent(size_t count) noexcept override { out_.taken(count); }
  Result<size_t> write(ByteView plain) override;
  Result<size_t> read(std::span<std::byte> plain) override;
  bool has_more() const noexcept override { return has_more_; }
  void end() noexcept override;

  // For OpenSSL's callbacks.
  SessionBuffer& in() noexcept { return in_; }
  SessionBuffer& out() noexcept { return out_; }

 private:
  Status start();
  Status finish_handshake();
  std::optional<Error> why_nothing_came(int result);
  std::unexpected<Error> lost(int result, const char* what);

  const Openssl<SSL_CTX> context_;
  const TlsRole role_;
  Openssl<SSL> ssl_;
  SessionBuffer in_, out_;
  PublicKey peer_key_;
  bool is_peer_key_temporary_ = false;
  size_t handshake_bytes_ = 0;  // received before the handshake was complete
  uint64_t records_ = 0;        // written with the current key
  bool is_complete_ = false;
  bool has_failed_ = false;
  std::optional<Error> failure_;  // for the next read(): found behind bytes that this one returned
  bool has_more_ = false;
};

// OpenSSL's interface to the two buffers. Null: out of memory.
const BIO_METHOD* memory_method() noexcept;

}  // namespace tc::trust
