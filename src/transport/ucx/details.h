// SPDX-License-Identifier: Apache-2.0
//
// What the two sides of a UCX connection tell each other when they greet. Little-endian:
//
//     str8 UCX version | u8 flags (1: TCP alone) | u64 token | u32 message limit | u32 window
//     | u16 size, worker address | u32 ring bytes, 0: none | u64 address of the ring | u16 size, packed key
//
// Thread: any.
#pragma once

#include <string>

#include "base/bytes.h"

namespace tc::transport {

struct UcxDetails {
  std::string version;
  bool tcp_alone = false;     // UCX was told to use nothing but TCP
  uint64_t token = 0;         // marks messages that are meant for this connection
  uint32_t batch_bytes = 0;   // the longest message taken
  uint32_t window_bytes = 0;  // of frames that may be on their way without credit
  Bytes worker_address;
  uint32_t ring_bytes = 0;    // of the memory that may be put into
  uint64_t ring_address = 0;  // in its owner's process
  Bytes ring_key;
};

Bytes encode_details(const UcxDetails& details);
Result<UcxDetails> decode_details(ByteView bytes);  // TC_ERR_MALFORMED

}  // namespace tc::transport
