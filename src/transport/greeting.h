// SPDX-License-Identifier: Apache-2.0
//
// The first bytes on a socket: each side sends one message, beginning with the side that connected. Little-endian:
//
//     u32 magic "TCN1" | u8 version | u8 kind | u16 zero | u32 size of what follows
//
//     kind 1, greeting:  str8 transport | u16 size, details for the transport | the node's HELLO (wire/hello.h)
//     kind 2, refusal:   u32 status | str16 reason; the connection ends behind it
//
// A refusal is laid out alike in all versions, so that a peer of another version can read the reason.
//
// Thread: any.
#pragma once

#include <string>

#include "base/bytes.h"

namespace tc::transport {

inline constexpr uint8_t greeting_version = 1;
inline constexpr size_t greeting_head_bytes = 12;
// Stops an unauthenticated peer from making us keep megabytes. UCX's worker addresses are the longest part.
inline constexpr size_t max_greeting_bytes = 16 * 1024;

struct Greeting {
  std::string transport;  // that the sender wants: "shm", "tcp", ...
  Bytes details;          // that this transport needs
  Bytes hello;            // of the node (wire/hello.h), opaque here
};

Bytes encode_greeting(const Greeting& greeting);
Bytes encode_refusal(const Error& why);

// How many bytes follow a head. TC_ERR_MALFORMED: the peer is no Three-Chains node. TC_ERR_VERSION, TC_ERR_TOO_LARGE.
Result<size_t> decode_greeting_head(ByteView head);
// `message`: head and what follows it. A refusal is an error: the peer's status and reason.
Result<Greeting> decode_greeting(ByteView message);

}  // namespace tc::transport
