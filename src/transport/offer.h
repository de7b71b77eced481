// SPDX-License-Identifier: Apache-2.0
//
// What a node tells a peer, inside HELLO, about the memory that the peer may write frames to. Little-endian:
//
//     u8 version | u8 ways (bit 0 ring, bit 1 put; am always) | str8 UCX version | u64 machine | u64 nonce
//     | u32 ring bytes | u64 address | u16 size, packed key
#pragma once

#include <string>

#include "base/bytes.h"

namespace tc::transport {

struct Offer {
  bool ring = false;
  bool put = false;
  std::string ucx_version;
  uint64_t machine = 0;
  uint64_t nonce = 0;  // stands in the memory, so that a mapping can be told from a wrong one
  uint32_t ring_bytes = 0;
  uint64_t address = 0;  // of the memory, in the process of who offers it
  Bytes key;
};

Bytes encode_offer(const Offer& offer);
Result<Offer> decode_offer(ByteView bytes);  // TC_ERR_MALFORMED, TC_ERR_VERSION

}  // namespace tc::transport
