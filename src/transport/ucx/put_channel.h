// SPDX-License-Identifier: Apache-2.0
//
// A stream of bytes by one-sided puts into memory of the receiver: a counter of the bytes that were put, then the bytes, in
// a ring. The counter is put behind a fence, so it never speaks of bytes that are not there yet.
//
// The receiver believes neither: it checks the counter and copies the bytes out before they are read. Nobody tells it of a
// put, so it looks at the counter with every progress(), and has the peer wake it before it sleeps.
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

  std::unique_ptr<OwnMemory> memory_;  // that the peer puts into
  std::unique_ptr<RemoteKey> key_;     // to the peer's
  uint64_t address_ = 0, bytes_ = 0;   // of it; of its ring
};

}  // namespace tc::transport
