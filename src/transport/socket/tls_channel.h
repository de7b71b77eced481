// SPDX-License-Identifier: Apache-2.0
//
// The channel of an encrypted connection. What one send() takes leaves in records of up to 16 KiB and, as long as the
// socket takes them, in one system call. Received records are decrypted straight into the frames' buffer.
//
// Thread: the node's.
#pragma once

#include "transport/socket/byte_out.h"
#include "transport/socket_stream.h"

namespace tc::transport {

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

}  // namespace tc::transport
