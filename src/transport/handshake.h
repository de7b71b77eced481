// SPDX-License-Identifier: Apache-2.0
//
// One TLS handshake on a socket: moves the bytes, and has the worker compute each step. Meanwhile the socket stays here,
// where its limits and deadlines are, and the stream has no session.
//
// Thread: the node's.
#pragma once

#include "transport/handshake_worker.h"
#include "transport/socket_stream.h"

namespace tc::transport {

class Handshake final : private HandshakeWorker::Client {
 public:
  class Owner {
   public:
    // The handshake is over: the stream has its session again. The owner may destroy the handshake.
    virtual void on_handshake(Status result) noexcept = 0;
    // Call progress() on these events of the socket.
    virtual void watch_for_handshake(uint32_t events) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  // `stream` has a session.
  Handshake(HandshakeWorker& worker, SocketStream& stream, trust::TlsRole role, Owner& owner) noexcept
      : worker_(worker), stream_(stream), role_(role), owner_(owner) {}
  ~Handshake() { worker_.cancel(*this); }
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;

  // Call first, and when the socket is ready.
  void progress() noexcept;
  // Has the peer been sent anything?
  bool has_answered() const noexcept { return has_answered_; }

 private:
  void on_step(std::unique_ptr<trust::TlsSession> session, Result<bool> complete) noexcept override;
  Status exchange();
  Status compute();
  Status check_first_bytes() const;

  HandshakeWorker& worker_;
  SocketStream& stream_;
  const trust::TlsRole role_;
  Owner& owner_;
  bool has_started_ = false;
  bool is_computed_ = false;  // the worker has the session
  bool has_answered_ = false;
};

}  // namespace tc::transport
