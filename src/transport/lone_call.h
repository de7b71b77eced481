// SPDX-License-Identifier: Apache-2.0
//
// A call that comes alone need not go through its stream, whose memory is cold: it runs from here, at once
// (Events::on_call). One place for all peers of a node, so it is warm.
//
// Thread: the node's. What a peer sent is copied before it runs.
#pragma once

#include <array>
#include <cstring>
#include <utility>

#include "transport/batch_in.h"
#include "transport/transport.h"

namespace tc::transport {

class LoneCall {
 public:
  // Runs the call in `batch`, of that connection, when the node wants that, it is the first message of this turn (what
  // later ones send shall be gathered), there is nothing else in it, and nothing waits before it on its stream, of which
  // only `bypass` is touched. False: it goes on the stream, like everything else.
  [[gnu::always_inline]] bool run(ByteView batch, BatchIn::Bypass& bypass, Connection& connection, uint32_t index,
                                  Pulse& pulse, Events& events) {
    if (!std::exchange(pulse.hands_over, false) || bypass.is_shut) return false;
    const auto header = BatchIn::frame_at(batch, 0);
    if (!header || header->kind != wire::Kind::call || batch.size() > wire::stride(header->length) ||
        header->length > body_.size())
      return false;
    copy_short(body_.data(), batch.subspan(wire::header_bytes, header->length));
    const auto stride = wire::stride(header->length);
    bypass.bytes += stride;  // it may tell the peer how far it is
    if (events.on_call(connection, index, *header, body_.data())) return true;
    bypass.bytes -= stride;
    return false;
  }

 private:
  alignas(64) std::array<std::byte, most_lone_bytes> body_;
};

}  // namespace tc::transport
