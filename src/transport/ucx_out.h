// SPDX-License-Identifier: Apache-2.0
//
// The way out of a connection over UCX: the peer's ring, active messages, or puts.
#pragma once

#include <ucp/api/ucp.h>

#include <cstring>

#include "transport/peer_table.h"
#include "transport/ring_out.h"
#include "transport/ucx_endpoint.h"

namespace tc::transport {

class UcxPeer;

// Active message ids.
inline constexpr unsigned am_batch = 1, am_control = 2, am_signal = 3;

class UcxOut final : public RingOut {
 public:
  // `entry` must outlive the stream.
  UcxOut(FlushList& list, UcxPeer& peer, PeerEntry::Out& entry)
      : RingOut(list, entry.bypass), peer_(peer), entry_(entry) {}

  // Messages go to this endpoint, which stays the peer's, and are marked with the token that its owner gave us.
  void open_wire(ucp_ep_h endpoint, uint64_t token) noexcept {
    entry_.endpoint = endpoint;
    entry_.their_token = token;
  }
  void shut_wire() noexcept {
    entry_.endpoint = nullptr;
    entry_.bypass.room = 0;
  }
  // Sends `size` bytes of frames that lie at base() of a buffer, with the eight bytes in front of them, where their mark
  // goes: one piece of memory, and no header to UCX, which then sends a small message by its shortest way. As send_eager(),
  // whose `user` is the buffer.
  static ucs_status_ptr_t send_batch(PeerEntry::Out& entry, OutBuffer& buffer, std::byte* first, size_t size) noexcept {
    const uint64_t header = entry.next_header();
    std::byte* const message = first - sizeof header;
    std::memcpy(message, &header, sizeof header);
    return send_eager(entry.endpoint, am_batch, nullptr, 0, message, size + sizeof header, &UcxOut::on_sent, &buffer);
  }
  // `request` is not null. True: the buffer is free again.
  bool is_sent(OutBuffer& buffer, ucs_status_ptr_t request) noexcept;
  // Frames go by puts into the peer's ring of `bytes`, whose control area is at `address` there.
  void open_put(ucp_rkey_h key, uint64_t address, size_t bytes, size_t batch_bytes) noexcept;
  // The peer said that it sleeps, having read `consumed` bytes. True: it has not seen all, wake it.
  bool peer_sleeps(uint64_t consumed) noexcept;

 private:
  bool transmit(OutBuffer& buffer, std::byte* first, size_t size) noexcept override;
  size_t contiguous() const noexcept override;
  void transmit_pad(uint64_t stride) noexcept override;
  void wake_peer() noexcept override;
  static void on_sent(void* request, ucs_status_t status, void* user) noexcept;

  bool put_batch(OutBuffer& buffer, size_t filled) noexcept;
  void put(OutBuffer& buffer, const std::byte* from, size_t size, uint64_t ring_position) noexcept;
  void fence() noexcept;

  UcxPeer& peer_;
  PeerEntry::Out& entry_;
  ucp_rkey_h put_key_ = nullptr;  // null: no puts
  uint64_t put_address_ = 0;      // of the frames, in the peer's process
  size_t put_bytes_ = 0;
  bool peer_sleeps_ = false;
};

}  // namespace tc::transport
