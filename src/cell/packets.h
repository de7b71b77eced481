// SPDX-License-Identifier: Apache-2.0
//
// Packets on the socket between a node and its cell, with the descriptors that come along (protocol.h has their bytes).
//
// Thread: one at a time.
#pragma once

#include <array>
#include <optional>
#include <span>

#include "base/fd.h"
#include "cell/protocol.h"

namespace tc::cell {

struct ReceivedPacket {
  Bytes bytes;  // empty: the other side is gone
  std::array<Fd, start_descriptors> descriptors;
};

// A pair of connected sockets that keep packets apart. TC_ERR_IO.
Result<std::array<Fd, 2>> socket_pair();
// Does not wait. TC_ERR_BUSY: the other side has to read first. TC_ERR_TOO_LARGE, TC_ERR_IO.
Status send_packet(int socket, ByteView bytes, std::span<const int> descriptors);
// For a cell, which takes descriptors. Waits if `waits` is true; nothing: none has come.
Result<std::optional<ReceivedPacket>> receive_packet(int socket, bool waits);

}  // namespace tc::cell
