// SPDX-License-Identifier: Apache-2.0
//
// A call that comes alone need not go through its stream, whose memory is cold: it runs from here, at once (Events::on_call).
// One place for all peers of a node, so it is warm.
//
// Thread: the node's. The peer's bytes are copied, and read once.
#pragma once

#include <array>
#include <cstring>
#include <utility>

#include "transport/batch_in.h"
#include "transport/transport.h"

namespace tc::transport {

class LoneCall {
 public:
  // May the message that comes next run at once? Only the first one of a turn: what later ones send shall be gathered.
  void permit(bool may_run) noexcept { may_run_ = may_run; }

  // Runs the call in `batch` when that is permitted, there is nothing else in it, and nothing waits before it on the stream
  // `in` of `connection`. False: it goes on the stream, like everything else.
  bool run(ByteView batch, BatchIn& in, Connection* connection, Events& events) {
    if (!std::exchange(may_run_, false) || connection == nullptr || !in.is_empty() ||
        batch.size() < wire::header_bytes || batch.size() > copy_.size() - wire::header_bytes)
      return false;
    uint64_t word;
    std::memcpy(&word, batch.data(), sizeof word);
    const auto header = wire::decode(word);
    const size_t length = header.length;
    if (header.kind != wire::Kind::call || length > batch.size() - wire::header_bytes ||
        batch.size() > wire::stride(length))
      return false;
    std::byte* const body = copy_.data() + 2 * wire::header_bytes;
    std::memcpy(body, batch.data() + wire::header_bytes, length);
    if (!events.on_call(*connection, header, body)) return false;
    in.count_taken(length);
    return true;
  }

 private:
  bool may_run_ = false;
  alignas(64) std::array<std::byte, 1024> copy_;
};

}  // namespace tc::transport
