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

 private:
  bool transmit(OutBuffer& buffer, size_t size) noexcept override;
  void wake_peer() noexcept override;
  static void on_sent(void* request, ucs_status_t status, void* user) noexcept;

  UcxPeer& peer_;
};

}  // namespace tc::transport
