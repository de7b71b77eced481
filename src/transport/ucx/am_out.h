// SPDX-License-Identifier: Apache-2.0
//
// Frames that leave as Active Messages, many in one.
//
// Thread: the node's.
#pragma once

#include "transport/ucx/batch_out.h"
#include "transport/ucx/wire.h"

namespace tc::transport {

class AmOut final : public BatchOut {
 public:
  AmOut(FlushList& list, Wire& wire) noexcept : BatchOut(list), wire_(wire) {}

 private:
  void transmit(OutBuffer& buffer, size_t size) noexcept override { wire_.send_batch(buffer, size); }

  Wire& wire_;
};

}  // namespace tc::transport
