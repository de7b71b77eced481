// SPDX-License-Identifier: Apache-2.0
//
// How calls came that may run as soon as they are here: of each connection what it takes to run one more call of the code
// that ran last. With more nodes than cores the link is cold, and need not be touched.
//
// Thread: the node's.
#pragma once

#include <cstdint>

#include "base/near_table.h"
#include "transport/transport.h"
#include "wire/frame.h"

namespace tc::target {
class Code;
}

namespace tc::node {

class Link;

struct LastCall {
  Link* link = nullptr;
  target::Code* code = nullptr;  // null: the link has to be asked
  uint32_t number = 0;           // of the code, on that link
  uint32_t bytes_left = 0;       // of frames, until the link wants to think of its peer's credit
  uint32_t route_mark = 0;       // of the route that the link keeps (Call::route_mark); 0: the link has to be asked
};

class LastCalls {
 public:
  // Null when other code was called last, or nothing since forget(). Counts the frame.
  LastCall* take(uint32_t index, const wire::Header& header) noexcept {
    LastCall* const last = calls_.find(index);
    const auto stride = wire::stride(header.length);
    if (last == nullptr || last->code == nullptr || last->number != header.number || last->bytes_left < stride)
      return nullptr;
    last->bytes_left -= static_cast<uint32_t>(stride);
    return last;
  }
  // May throw std::bad_alloc.
  void note(uint32_t index, const LastCall& call) {
    if (index != transport::Connection::no_index) calls_.row(index) = call;
  }
  // On some link a call may no more run at once, or some code is about to be freed.
  void forget() noexcept { calls_.clear(); }

 private:
  NearTable<LastCall, 32> calls_;  // by Connection::index()
};

}  // namespace tc::node
