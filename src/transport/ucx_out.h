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

  bool send_message(OutBuffer& buffer, std::byte* first, size_t size) noexcept;
  bool put_batch(OutBuffer& buffer, size_t filled) noexcept;
  void put(OutBuffer& buffer, const std::byte* from, size_t size, uint64_t ring_position) noexcept;
  void fence() noexcept;

  UcxPeer& peer_;
  ucp_rkey_h put_key_ = nullptr;  // null: no puts
  uint64_t put_address_ = 0;      // of the frames, in the peer's process
  size_t put_bytes_ = 0;
  bool peer_sleeps_ = false;
};

}  // namespace tc::transport
