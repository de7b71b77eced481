// SPDX-License-Identifier: Apache-2.0
//
// Connections over a socket, plain or encrypted.
//
// Thread: the node's.
#pragma once

#include "transport/socket/byte_connection.h"
#include "transport/socket/byte_stream.h"
#include "transport/socket_stream.h"

namespace tc::transport {

// The channel of an encrypted connection. What one send() takes leaves in records of up to 16 KiB and, as long as the
// socket takes them, in one system call. Received records are decrypted straight into the frames' buffer.
class TlsChannel final : public Channel {
 public:
  TlsChannel(SocketStream& stream, ByteOut::Owner& owner) noexcept : stream_(stream), owner_(owner) {}

  // When the socket took only a part, the owner is told that the channel is full, whatever send() returns.
  Result<size_t> send(ByteView bytes) override {
    TC_ASSIGN(const size_t taken, stream_.send(bytes));
    if (taken != 0 && stream_.has_unsent()) owner_.on_channel_full();
    return taken;
  }
  Result<size_t> receive(std::span<std::byte> into) override { return stream_.receive(into); }

 private:
  SocketStream& stream_;
  ByteOut::Owner& owner_;
};

// A connection over a socket: plain TCP, encrypted TCP, or a Unix socket.
class TcpConnection final : public ByteConnection, private Channel {
 public:
  static constexpr std::string_view plain = "tcp", encrypted = "tls", local = "unix";
  static bool is_name(std::string_view name) noexcept { return name == plain || name == encrypted || name == local; }
  // What a connection with this peer is called.
  static std::string_view name_for(const Origin& peer) noexcept {
    return peer.is_local ? local : peer.key ? encrypted : plain;
  }

  static Result<std::unique_ptr<TcpConnection>> connect(Hub& hub, Fd socket, std::string address,
                                                        std::vector<SocketAddress> others, ByteView hello);
  // Takes `stream` on success only.
  static Result<std::unique_ptr<TcpConnection>> accept(Hub& hub, SocketStream& stream, const Origin& origin);

  std::string_view transport() const noexcept override { return name_for(origin_); }
  void set_paused(bool paused) noexcept override;
  // Receives without epoll. True when something had come.
  bool poll() noexcept { return receive_or_lose(); }

 private:
  using ByteConnection::ByteConnection;

  Status open_streams() override;
  void on_socket(uint32_t events) override;
  void on_channel_full() noexcept override;
  void end_receiving() noexcept override;
  void on_deadline() noexcept override;
  void await_resumption() noexcept;
  // The events to watch: all that come from the peer, unless it has to wait.
  uint32_t reading() const noexcept;

  // The channel of a plain connection.
  Result<size_t> send(ByteView bytes) override { return send_on(stream_.socket(), bytes); }
  bool can_gather() const noexcept override { return true; }
  Result<size_t> send_gathered(std::span<const ByteView> parts) override;
  Result<size_t> receive(std::span<std::byte> into) override { return receive_on(stream_.socket(), into); }

  TlsChannel tls_{stream_, *this};
  bool awaits_room_ = false;    // the socket takes nothing now
  bool is_unwatched_ = false;   // the peer is gone while it is paused
  uint64_t read_until_ns_ = 0;  // the peer is gone: when it is paused then, it is lost
};

}  // namespace tc::transport
