// SPDX-License-Identifier: Apache-2.0
//
// A connection between two processes of one user on one host: frames go through two shared rings. The Unix socket on
// which the memory was handed over stays as the doorbell, and shows by its end that the peer is gone.
//
// A doorbell is one byte, sent without blocking. An eventfd would not do: its O_NONBLOCK belongs to both processes, so a
// hostile peer could make our ring of it block for ever.
//
// Thread: the node's.
#pragma once

#include "transport/ring/ring_in.h"
#include "transport/ring/ring_memory.h"
#include "transport/ring/ring_out.h"
#include "transport/socket_connection.h"

namespace tc::transport {

class RingConnection final : public SocketConnection, private RingOut::Doorbell {
 public:
  static constexpr std::string_view name = "shm";

  // `socket` is connected to a process of our user.
  static Result<std::unique_ptr<RingConnection>> connect(Hub& hub, Fd socket, std::string address, size_t ring_bytes,
                                                         ByteView hello);
  // A peer that has greeted and handed memory over. Takes `socket` when all is well; TC_ERR_MALFORMED.
  static Result<std::unique_ptr<RingConnection>> accept(Hub& hub, Fd& socket, const Origin& origin,
                                                        const Greeting& greeting, Fd descriptor);

  // A process that cannot make others' stores visible before it sleeps (membarrier) must not use rings.
  static bool is_possible() noexcept;
  // Before a sleep, after set_sleeping(): what peers stored before they looked at the flag is visible now.
  static bool barrier() noexcept;

  OutStream& out() noexcept override { return out_; }
  InStream& in() noexcept override { return in_; }
  bool is_polled() const noexcept override { return true; }
  std::string_view transport() const noexcept override { return name; }
  // Says to the peer that we sleep, or do not.
  void set_sleeping(bool sleeping) noexcept { in_.set_sleeping(sleeping); }

 private:
  RingConnection(Hub& hub, Fd socket, std::string address, RingMemory memory);
  RingConnection(Hub& hub, Fd socket, Origin origin, RingMemory memory);

  Bytes our_details() override;
  Status open_streams() override;
  void shut_streams() noexcept override;
  void on_socket(uint32_t events) override;
  void ring() noexcept override;

  RingMemory memory_;
  const RingMemory::Side side_;
  RingIn in_;
  RingOut out_;
};

}  // namespace tc::transport
