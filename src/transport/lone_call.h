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
  static constexpr size_t most_bytes = 1024;  // behind the call's header

  // Runs the call in `batch` when the node wants that, it is the first message of this turn (what later ones send shall
  // be gathered), there is nothing else in it, and nothing waits before it on the stream `in` of its connection, which
  // is `owner`'s. False: it goes on the stream, like everything else.
  [[gnu::hot]] bool run(ByteView batch, BatchIn& in, void* owner, Pulse& pulse, Events& events) {
    if (!std::exchange(pulse.hands_over, false) || owner == nullptr || !in.is_empty()) return false;
    const auto header = BatchIn::frame_at(batch, 0);
    if (!header || header->kind != wire::Kind::call || batch.size() > wire::stride(header->length) ||
        header->length > body_.size())
      return false;
    std::memcpy(body_.data(), batch.data() + wire::header_bytes, header->length);
    if (!events.on_call(owner, *header, body_.data())) return false;
    in.count_taken(header->length);
    return true;
  }

 private:
  alignas(64) std::array<std::byte, most_bytes> body_;
};

}  // namespace tc::transport
