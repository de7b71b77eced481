// SPDX-License-Identifier: Apache-2.0
//
// An ordered, reliable stream of bytes to a peer and back, on which ByteIn and ByteOut are built: a TCP socket, UCX, or
// a network that a test simulates.
//
// Thread: the node's. Neither call blocks.
#pragma once

#include <span>

#include "base/bytes.h"

namespace tc::transport {

class Channel {
 public:
  // Returns how many bytes it took; 0: none now. After an error it takes no more.
  virtual Result<size_t> send(ByteView bytes) = 0;
  // The same for bytes in several places, in one system call: only if can_gather().
  virtual bool can_gather() const noexcept { return false; }
  virtual Result<size_t> send_gathered(std::span<const ByteView> parts) { return send(parts.front()); }
  // Returns how many bytes came; 0: none now. TC_ERR_DISCONNECTED: no more will come.
  virtual Result<size_t> receive(std::span<std::byte> into) = 0;

 protected:
  ~Channel() = default;
};

}  // namespace tc::transport
