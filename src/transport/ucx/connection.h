// SPDX-License-Identifier: Apache-2.0
//
// A connection that sends its bytes through UCX. The two sides greet on a socket and exchange the addresses of their
// UCX workers there. UCX gets the peer's address only after the node has accepted the peer. The socket stays open,
// because its end shows that the peer has died: UCX over shared memory does not detect that.
//
// A side that closes first sends a closing record on the socket: how many bytes it has sent in all (u64). So the other
// side knows whether UCX still holds some.
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
  static Result<std::unique_ptr<UcxConnection>> accept(UcxFabric& fabric, SocketStream& stream, const Origin& origin,
                                                       const Greeting& greeting);

  std::string_view transport() const noexcept override;
  void set_paused(bool paused) noexcept override;

  // For the fabric. Receives what has come, and sends what waited for room.
  void deliver() noexcept;
  // Checks deadlines and failures. Returns when to call it again; 0: never.
  uint64_t check(uint64_t now) noexcept;

 private:
  UcxConnection(UcxFabric& fabric, Fd socket, std::string address, std::vector<SocketAddress> others);
  UcxConnection(UcxFabric& fabric, const Origin& origin);

  Status take_details(ByteView bytes);
  Status on_greeted(Greeting& greeting) override { return take_details(greeting.details); }
  Bytes our_details() override { return encode_details(channel_->details()); }
  Status open_streams() override;
  void hand_over(Bytes unsent) override;
  void on_socket(uint32_t events) override;
  void on_channel_full() noexcept override { awaits_room_ = true; }
  void end_receiving() noexcept override;

  UcxFabric& fabric_;
  std::unique_ptr<UcxChannel> channel_;
  UcxDetails theirs_;
  bool has_ended() const noexcept;
  void wait_for_final_bytes(uint64_t ns) noexcept;

  bool awaits_room_ = false;
  Bytes closing_record_;                  // as far as it has come
  uint64_t final_bytes_deadline_ns_ = 0;  // set when the socket has ended
};

}  // namespace tc::transport
