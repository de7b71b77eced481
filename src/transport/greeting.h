// SPDX-License-Identifier: Apache-2.0
//
// The first words on a socket: each side says one message, the side that connected first. Little-endian:
//
//     u32 magic "TCN1" | u8 version | u8 kind | u16 zero | u32 size of what follows
//
//     kind 1, greeting:  str8 transport | u16 size, details of the transport's own | the node's HELLO (wire/hello.h)
//     kind 2, refusal:   u32 status | str16 reason; the connection ends behind it
//
// A refusal is laid out alike in all versions, so that a peer of another version can be told why.
// Thread: any.
#pragma once

#include <string>

#include "base/bytes.h"

namespace tc::transport {

inline constexpr uint8_t greeting_version = 1;
inline constexpr size_t greeting_head_bytes = 12;
// Stops a stranger from making us wait for, and keep, megabytes. UCX's worker addresses are the longest part.
inline constexpr size_t max_greeting_bytes = 16 * 1024;

struct Greeting {
  std::string transport;  // how the sender wants frames to travel: "shm", "tcp", ...
  Bytes details;          // what that transport has to know
  Bytes hello;            // the node's, opaque here
};

Bytes encode_greeting(const Greeting& greeting);
Bytes encode_refusal(const Error& why);

// How many bytes follow a head. TC_ERR_MALFORMED: it is none of ours. TC_ERR_VERSION, TC_ERR_TOO_LARGE.
Result<size_t> decode_greeting_head(ByteView head);
// `message`: head and what follows it. A refusal is an error: the peer's status and reason.
Result<Greeting> decode_greeting(ByteView message);

}  // namespace tc::transport
