// SPDX-License-Identifier: Apache-2.0
//
// A connection whose frames travel as a stream of bytes through a Channel: over TCP, or over UCX.
//
// Thread: the node's.
#pragma once

#include "transport/socket/byte_in.h"
#include "transport/socket/byte_out.h"
#include "transport/socket_connection.h"

namespace tc::transport {

class ByteConnection : public SocketConnection, private ByteOut::Owner {
 public:
  OutStream& out() noexcept override { return out_; }
  InStream& in() noexcept override { return in_; }
  bool is_polled() const noexcept override { return false; }

 protected:
  ByteConnection(Hub& hub, Fd socket, std::string address, std::vector<SocketAddress> others)
      : SocketConnection(hub, std::move(socket), std::move(address), std::move(others)), out_(hub.flush_list, *this) {}
  ByteConnection(Hub& hub, Fd socket, Origin origin)
      : SocketConnection(hub, std::move(socket), std::move(origin)), out_(hub.flush_list, *this) {}

  // `channel` must stay until shut_streams().
  void open_streams_on(Channel& channel);
  void shut_streams() noexcept override;
  Bytes unsent() override { return {out_.unsent().begin(), out_.unsent().end()}; }

  // Receives what has come and tells the owner of it. True when there was something.
  bool take_in();
  // take_in() where nothing may be thrown.
  bool take_in_safely() noexcept;
  // The channel takes bytes again.
  void on_channel_room() noexcept { out_.on_channel_room(); }

 private:
  void on_channel_lost(Error why) noexcept override { lose(std::move(why)); }

  ByteIn in_;
  ByteOut out_;
  Channel* channel_ = nullptr;
};

}  // namespace tc::transport
