// SPDX-License-Identifier: Apache-2.0
#include "floor/raw_memory.h"

namespace tc::bench {

void RawRings::poll() noexcept {
  for (uint64_t most = RawRing::slots / 8; most > 0; --most) {
    const RawCall& call = in_->calls[taken_ % RawRing::slots];
    const uint64_t header = __atomic_load_n(&call.header, __ATOMIC_ACQUIRE);
    if (header >> RawCall::index_bits != taken_ + 1) break;
    raw_table[header % raw_table.size()](&call.payload, &count_);
    ++taken_;
  }
  if (taken_ - published_ < RawRing::slots / 8) return;
  published_ = taken_;
  __atomic_store_n(&in_->consumed, taken_, __ATOMIC_RELEASE);
}

}  // namespace tc::bench
