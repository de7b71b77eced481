// SPDX-License-Identifier: Apache-2.0
//
// A connection over a TCP socket.
//
// Thread: the node's.
#pragma once

#include "transport/socket/byte_connection.h"

namespace tc::transport {

class TcpConnection final : public ByteConnection, private Channel {
 public:
  static constexpr std::string_view name = "tcp";

  static Result<std::unique_ptr<TcpConnection>> connect(Hub& hub, Fd socket, std::string address,
                                                        std::vector<SocketAddress> others, ByteView hello);
  static Result<std::unique_ptr<TcpConnection>> accept(Hub& hub, Fd& socket, const Origin& origin);

  std::string_view transport() const noexcept override { return name; }
  // Receives without epoll. True when something had come.
  bool poll() noexcept { return receive_or_lose(); }

 private:
  using ByteConnection::ByteConnection;

  Status open_streams() override;
  void on_socket(uint32_t events) override;
  void on_channel_full() noexcept override;

  Result<size_t> send(ByteView bytes) override;
  bool can_gather() const noexcept override { return true; }
  Result<size_t> send_gathered(std::span<const ByteView> parts) override;
  Result<size_t> receive(std::span<std::byte> into) override;
};

}  // namespace tc::transport
