// SPDX-License-Identifier: Apache-2.0
//
// The greeting of each side of a link, which the transport carries (transport/greeting.h). It names the node and the
// versions that the node understands.
//
// Thread: any; plain values.
#pragma once

#include "base/bytes.h"

namespace tc::wire {

struct Hello {
  uint32_t protocol = 0;
  uint8_t abi = 0;
  uint64_t instance = 0;  // epoch: a new random number each time a node starts
  uint32_t node_id = 0;
  uint64_t max_message = 0;  // largest frame body this side takes, fragments put together
  std::string name;          // label for messages
  std::string address;       // where it listens; empty when it does not
  std::string triple;
  std::string cpu;
};

Bytes encode_hello(const Hello& hello);
// Checks sizes and that labels are printable. A protocol version other than ours is TC_ERR_VERSION, with both.
Result<Hello> decode_hello(ByteView body);

}  // namespace tc::wire
