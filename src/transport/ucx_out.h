// SPDX-License-Identifier: Apache-2.0
//
// The way out of a connection over UCX: the peer's ring, active messages, or puts.
#pragma once

#include <ucp/api/ucp.h>

#include "transport/ring_out.h"

namespace tc::transport {

class UcxPeer;

class UcxOut final : public RingOut {
 public:
  UcxOut(FlushList& list, UcxPeer& peer) : RingOut(list), peer_(peer) {}

  // Messages go to this endpoint, which stays the peer's, and are marked with the token that its owner gave us.
  void open_wire(ucp_ep_h endpoint, uint64_t token) noexcept {
    ucp_ = endpoint;
    their_token_ = token;
  }
  void shut_wire() noexcept { ucp_ = nullptr; }
  // The mark of the next message of any kind.
  uint64_t next_header() noexcept {
    return (their_token_ & ~(uint64_t{0xffff} << 48)) | static_cast<uint64_t>(next_sent_++) << 48;
  }
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

  bool is_sent(OutBuffer& buffer, ucs_status_ptr_t request) noexcept;
  bool put_batch(OutBuffer& buffer, size_t filled) noexcept;
  void put(OutBuffer& buffer, const std::byte* from, size_t size, uint64_t ring_position) noexcept;
  void fence() noexcept;

  // What each message touches, one cache line.
  alignas(64) UcxPeer& peer_;
  ucp_ep_h ucp_ = nullptr;  // null: there is none yet, or no more
  uint64_t their_token_ = 0;
  ucp_rkey_h put_key_ = nullptr;  // null: no puts
  uint16_t next_sent_ = 0;
  uint64_t put_address_ = 0;  // of the frames, in the peer's process
  size_t put_bytes_ = 0;
  bool peer_sleeps_ = false;
};

}  // namespace tc::transport
