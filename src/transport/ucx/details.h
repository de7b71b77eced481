// SPDX-License-Identifier: Apache-2.0
//
// The details in the greetings of a UCX connection. Little-endian:
//
//     str8 UCX version | u8 flags (1: TCP alone) | u64 token | u32 window | u16 size, worker address
//     | u64 address of the memory for puts | u16 size, packed key to it, empty: none
//     | the first 8 bytes of the SHA-256 of all this
//
// UCX does not check a worker address, and aborts the process on a damaged one: the hash detects damage. It is no
// defence against a hostile peer; those are refused before.
//
// Thread: any.
#pragma once

#include <string>

#include "base/bytes.h"

namespace tc::transport {

struct UcxDetails {
  std::string version;
  bool tcp_alone = false;     // UCX was restricted to TCP
  uint64_t token = 0;         // stands in each message for this connection: 48 bits
  uint32_t window_bytes = 0;  // that may be in flight
  Bytes worker_address;
  uint64_t address = 0;  // of the memory for puts, in its owner's process
  Bytes key;
};

inline constexpr uint32_t min_window_bytes = 4096, max_window_bytes = 1u << 30;

Bytes encode_details(const UcxDetails& details);
Result<UcxDetails> decode_details(ByteView bytes);  // TC_ERR_MALFORMED

}  // namespace tc::transport
