// SPDX-License-Identifier: Apache-2.0
//
// Frames that leave by one-sided puts into a ring in the peer's memory.
//
// A put is torn: its last byte can land before its first. So a message goes in three steps: a put of all but the first
// header word, which ends with the zero word at the place of the next header; a fence; and an aligned put of the first
// header word, eight bytes, which makes all of it visible.
//
// Thread: the node's.
#pragma once

#include "transport/ring/ring.h"
#include "transport/ucx/batch_out.h"
#include "transport/ucx/memory.h"
#include "transport/ucx/wire.h"

namespace tc::transport {

class PutOut final : public BatchOut {
 public:
  PutOut(FlushList& list, Wire& wire, ucp_worker_h worker) noexcept : BatchOut(list), wire_(wire), worker_(worker) {}

  // The peer's ring of `bytes`, whose control area is at `address` there.
  void open_ring(std::unique_ptr<RemoteKey> key, uint64_t address, size_t bytes, size_t batch_bytes);
  // Puts on their way use the key: who ends the connection keeps it.
  std::unique_ptr<RemoteKey> take_key() noexcept { return std::move(key_); }
  // The peer said that it sleeps, having read `consumed` bytes: it is woken now if it has not seen all, else with the next
  // message.
  void on_sleeping(uint64_t consumed) noexcept;

 private:
  void transmit(OutBuffer& buffer, size_t size) noexcept override;
  size_t contiguous() const noexcept override;
  void transmit_pad(uint64_t stride) noexcept override;
  void put(OutBuffer& buffer, const std::byte* from, size_t size, uint64_t ring_position) noexcept;
  void fence() noexcept;

  Wire& wire_;
  ucp_worker_h worker_;
  std::unique_ptr<RemoteKey> key_;
  uint64_t address_ = 0;  // of the frames, in the peer's process
  size_t bytes_ = 0;
  bool peer_sleeps_ = false;
};

}  // namespace tc::transport
