// SPDX-License-Identifier: Apache-2.0
//
// What two transports tell each other over the plain socket before UCX can carry anything: where the worker is,
// and by which token its messages are to be marked. Little-endian:
//
//     u32 magic "TCW1" | u32 size of what follows | u16 version | str8 UCX version | u64 machine | u64 token
//     | u32 batch limit | u32 window | str16 listening address | u16 size, worker address
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"

namespace tc::transport {

struct Greeting {
  std::string ucx_version;
  uint64_t machine = 0;      // equal for processes that can share memory: see this_machine()
  uint64_t token = 0;        // marks the messages that are meant for this connection
  uint32_t batch_bytes = 0;  // the longest batch taken
  uint32_t window_bytes = 0;
  std::string listening;  // "host:port"; empty when the sender does not listen
  Bytes worker_address;
};

inline constexpr uint16_t greeting_version = 1;
inline constexpr size_t greeting_head_bytes = 8;
// UCX addresses are some hundred bytes. Stops a stranger from making us wait for, and keep, megabytes.
inline constexpr size_t max_greeting_bytes = 32 * 1024;

Bytes encode_greeting(const Greeting& greeting);
// Nothing when `received` is only the beginning of one. TC_ERR_MALFORMED, TC_ERR_VERSION.
Result<std::optional<Greeting>> decode_greeting(ByteView received);

// Boot id and the namespaces that decide who sees whose memory.
uint64_t this_machine();

}  // namespace tc::transport
