// SPDX-License-Identifier: Apache-2.0
//
// A connection that sends its frames as a stream of bytes through a Channel: over TCP, or over UCX.
//
// Thread: the node's.
#pragma once

#include "transport/socket/byte_stream.h"
#include "transport/socket_connection.h"

namespace tc::transport {

class ByteConnection : public SocketConnection, protected ByteOut::Owner {
 public:
  OutStream& out() noexcept override { return out_; }
  InStream& in() noexcept override { return in_; }
  bool is_polled() const noexcept override { return false; }
  Traffic traffic() const noexcept override { return {in_.received(), out_.sent(), out_.waiting()}; }
  void set_paused(bool paused) noexcept override { is_paused_ = paused; }
  bool is_paused() const noexcept { return is_paused_; }

 protected:
  ByteConnection(Hub& hub, Fd socket, std::string address, std::vector<SocketAddress> others)
      : SocketConnection(hub, std::move(socket), std::move(address), std::move(others)), out_(hub.flush_list, *this) {}
  ByteConnection(Hub& hub, SocketStream stream, Origin origin)
      : SocketConnection(hub, std::move(stream), std::move(origin)), out_(hub.flush_list, *this) {}

  // `channel` must stay until shut_streams().
  void open_streams_on(Channel& channel, size_t least_room = 4096);
  void shut_streams() noexcept override;
  Bytes unsent() override { return {out_.unsent().begin(), out_.unsent().end()}; }

  // Receives what has come and delivers it to the owner. True when there was something.
  bool receive_frames();
  // The same; without memory for it, the connection is lost.
  bool receive_or_lose() noexcept;
  // The channel takes bytes again.
  void on_channel_room() noexcept { out_.on_channel_room(); }
  // The peer reads no more. What it sent before is received first, and then the connection is lost for this reason.
  void end_sending(Error why) noexcept;
  // Sending has ended: has the channel's receive() return an error once it has returned what has come.
  virtual void end_receiving() noexcept = 0;
  // Receiving has ended, so the connection has.
  void lose_at_end(Error why) noexcept { lose(sending_failure_ ? std::move(*sending_failure_) : std::move(why)); }

 private:
  void on_channel_lost(Error why) noexcept override { end_sending(std::move(why)); }

  ByteIn in_;
  ByteOut out_;
  Channel* channel_ = nullptr;
  std::optional<Error> sending_failure_;
  bool is_paused_ = false;
};

}  // namespace tc::transport
