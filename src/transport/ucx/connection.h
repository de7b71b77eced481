// SPDX-License-Identifier: Apache-2.0
//
// A connection whose bytes UCX carries. The two sides greet on a socket of ours and tell each other there where their
// workers are; UCX is given a peer's address only after the node has accepted the peer. The socket stays: by its end a death
// is noticed, which UCX on shared memory never does.
//
// When one side closes, it says on the socket how many bytes it has sent in all (u64), so that the other one knows whether
// UCX still holds some.
//
// Thread: the node's.
#pragma once

#include "transport/socket/byte_connection.h"
#include "transport/ucx/channel.h"

namespace tc::transport {

class UcxConnection final : public ByteConnection {
 public:
  static Result<std::unique_ptr<UcxConnection>> connect(UcxFabric& fabric, Fd socket, std::string address,
                                                        std::vector<SocketAddress> others, ByteView hello);
  static Result<std::unique_ptr<UcxConnection>> accept(UcxFabric& fabric, Fd& socket, const Origin& origin,
                                                       const Greeting& greeting);

  std::string_view transport() const noexcept override;

  // For the fabric. Receives and sends what the channel has news of.
  void deliver() noexcept;
  // Sees to what is due. When there will be more; 0: never.
  uint64_t check(uint64_t now) noexcept;

 private:
  UcxConnection(UcxFabric& fabric, Fd socket, std::string address, std::vector<SocketAddress> others);
  UcxConnection(UcxFabric& fabric, Fd socket, const Origin& origin);

  Status take_details(ByteView bytes);
  Status on_greeted(Greeting& greeting) override { return take_details(greeting.details); }
  Bytes our_details() override { return encode_details(channel_->details()); }
  Status open_streams() override;
  void part(Bytes unsent) override;
  void on_socket(uint32_t events) override;
  void on_channel_full() noexcept override { waits_for_room_ = true; }

  UcxFabric& fabric_;
  std::unique_ptr<UcxChannel> channel_;
  UcxDetails theirs_;
  bool has_ended() const noexcept;
  void wait_for_last_words(uint64_t ns) noexcept;

  bool waits_for_room_ = false;
  Bytes last_word_;          // that came on the socket: how much the peer has sent
  uint64_t lost_at_ns_ = 0;  // the peer has ended: UCX may still hold bytes, until then
};

}  // namespace tc::transport
