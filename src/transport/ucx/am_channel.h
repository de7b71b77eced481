// SPDX-License-Identifier: Apache-2.0
//
// A stream of bytes in Active Messages.
//
// Thread: the node's.
#pragma once

#include "transport/ucx/channel.h"

namespace tc::transport {

class AmChannel final : public UcxChannel {
 public:
  explicit AmChannel(UcxFabric& fabric) noexcept : UcxChannel(fabric) {}

 private:
  Status transmit(ByteView bytes, uint64_t) override { return post(am_bytes, bytes); }
  bool has_arrived() const noexcept override { return read_ != inbox_.size(); }
  Result<size_t> take(std::span<std::byte> into, uint64_t) override;
  Status on_bytes(ByteView bytes) override;

  Bytes inbox_;
  size_t read_ = 0;  // of the inbox
};

}  // namespace tc::transport
