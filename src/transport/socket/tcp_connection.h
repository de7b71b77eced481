// SPDX-License-Identifier: Apache-2.0
//
// A connection over a TCP socket of ours.
//
// Thread: the node's.
#pragma once

#include "transport/socket/byte_in.h"
#include "transport/socket/byte_out.h"
#include "transport/socket_connection.h"

namespace tc::transport {

class TcpConnection final : public SocketConnection, private Channel, private ByteOut::Owner {
 public:
  static constexpr std::string_view name = "tcp";

  static Result<std::unique_ptr<TcpConnection>> connect(Hub& hub, Fd socket, std::string address,
                                                        std::vector<SocketAddress> others, ByteView hello);
  static Result<std::unique_ptr<TcpConnection>> accept(Hub& hub, Fd& socket, const Origin& origin);

  OutStream& out() noexcept override { return out_; }
  InStream& in() noexcept override { return in_; }
  bool is_polled() const noexcept override { return false; }
  std::string_view transport() const noexcept override { return name; }

  // Looks whether something has come, without asking who waits on all descriptors. True when it had.
  bool poll() noexcept;

 private:
  TcpConnection(Hub& hub, Fd socket, std::string address, std::vector<SocketAddress> others);
  TcpConnection(Hub& hub, Fd socket, Origin origin);

  Greeting answer() const override;
  Status open_streams() override;
  void shut_streams() noexcept override;
  Bytes unsent() override;
  void on_socket(uint32_t events) override;
  bool take_in();

  Result<size_t> send(ByteView bytes) override;
  Result<size_t> receive(std::span<std::byte> into) override;
  void on_channel_full() noexcept override;
  void on_channel_lost(Error why) noexcept override { lose(std::move(why)); }

  ByteIn in_;
  ByteOut out_;
};

}  // namespace tc::transport
