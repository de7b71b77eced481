// SPDX-License-Identifier: Apache-2.0
//
// A connection between two processes of one user on one host: frames go through two shared rings. The Unix socket by
// which the memory was sent stays open. It is the doorbell that wakes a sleeping peer, and its end shows that the peer
// is gone.
//
// To ring is to send one byte without blocking. An eventfd would be simpler, but its O_NONBLOCK flag is shared by both
// processes: a hostile peer could clear it and make our write block for ever.
//
// Thread: the node's.
#pragma once

#include "transport/ring/ring.h"
#include "transport/socket_connection.h"

namespace tc::transport {

class RingConnection final : public SocketConnection {
 public:
  static constexpr std::string_view name = "shm";

  // `socket` is connected to a process of our user. `ring_bytes`: what frames go round in, in each direction.
  static Result<std::unique_ptr<RingConnection>> connect(Hub& hub, Fd socket, std::string address, size_t ring_bytes,
                                                         ByteView hello);
  // A connection from a peer that has greeted and sent memory. Takes `stream` on success only. TC_ERR_MALFORMED.
  static Result<std::unique_ptr<RingConnection>> accept(Hub& hub, SocketStream& stream, const Origin& origin,
                                                        const Greeting& greeting, Fd descriptor);

  // Has this kernel membarrier? Without it, a process could miss frames when it falls asleep, and must not use rings.
  static bool is_possible() noexcept;
  // Call before a sleep, after set_sleeping(): makes visible what peers stored before they checked the flag.
  static bool barrier() noexcept;

  OutStream& out() noexcept override { return out_; }
  InStream& in() noexcept override { return in_; }
  bool is_polled() const noexcept override { return true; }
  std::string_view transport() const noexcept override { return name; }
  Traffic traffic() const noexcept override { return {in_.consumed(), out_.written(), out_.unread()}; }
  uint64_t trim(uint64_t now_ns) noexcept { return out_.trim(now_ns); }
  // Tells the peer whether we sleep, and so must be woken.
  void set_sleeping(bool sleeping) noexcept { in_.set_sleeping(sleeping); }

 private:
  RingConnection(Hub& hub, Fd socket, std::string address, RingMemory memory);
  RingConnection(Hub& hub, SocketStream stream, Origin origin, RingMemory memory);

  Bytes our_details() override;
  Status open_streams() override;
  void shut_streams() noexcept override;
  void on_socket(uint32_t events) override;
  void ring_doorbell() noexcept;

  RingMemory memory_;
  const RingMemory::Side side_;
  RingIn in_;
  RingOut out_;
};

}  // namespace tc::transport
