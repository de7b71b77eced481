// SPDX-License-Identifier: Apache-2.0
//
// A stream of bytes by one-sided puts into a ring in the receiver's memory. Before the ring stands a counter of the
// bytes that were put. It is put after a fence, so it never counts bytes that are not there yet.
//
// The receiver trusts neither: it checks the counter, and copies the bytes out before they are read. A put causes no
// event at the receiver. So it reads the counter in every progress(), and before it sleeps it requests a signal from
// the peer.
//
// Thread: the node's.
#pragma once

#include "transport/ucx/channel.h"
#include "transport/ucx/memory.h"

namespace tc::transport {

class PutChannel final : public UcxChannel {
 public:
  static Result<std::unique_ptr<UcxChannel>> create(UcxFabric& fabric);
  ~PutChannel() override;
  UcxDetails details() const override;

 private:
  PutChannel(UcxFabric& fabric, std::unique_ptr<OwnMemory> memory) noexcept
      : UcxChannel(fabric), memory_(std::move(memory)) {}

  Status open_memory(const UcxDetails& theirs) override;
  Status transmit(ByteView bytes, uint64_t position) override;
  bool has_arrived() const noexcept override { return counter() != taken_; }
  Result<size_t> take(std::span<std::byte> into, uint64_t taken) override;
  Status on_bytes(ByteView bytes) override;

  uint64_t counter() const noexcept;
  ucs_status_t put(const std::byte* from, size_t size, uint64_t offset) noexcept;

  std::unique_ptr<OwnMemory> memory_;  // ours, which the peer puts into
  std::unique_ptr<RemoteKey> key_;     // to the peer's memory
  uint64_t address_ = 0, bytes_ = 0;   // of the peer's memory; of its ring
};

}  // namespace tc::transport
