// SPDX-License-Identifier: Apache-2.0
//
// Where running code sends itself on: of each node what it takes to send one more call of the code that went there last.
// With more nodes than cores the link to it is cold, and need not be touched.
//
// Thread: the node's.
#pragma once

#include <cstdint>

#include "base/near_table.h"
#include "transport/transport.h"

namespace tc::target {
class Code;
}

namespace tc::node {

struct NextHop {
  transport::OutStream* out = nullptr;
  const target::Code* code = nullptr;
  uint32_t number : 24 = 0;      // of the code, on that link
  uint32_t keeps_route : 1 = 0;  // the peer was told to keep the route with that mark
  uint32_t index = 0;            // of its connection
  uint32_t most_bytes = 0;       // of a call
  uint32_t route_mark = 0;       // of the route that went there last (Call::route_mark); 0: none

  bool keeps(uint32_t mark) const noexcept { return keeps_route != 0 && route_mark == mark; }
  // `transport`: whose connection it is. `body`: what `flags` say, and the payload. False: no room now, or too long.
  [[gnu::always_inline]] bool send(transport::Transport& transport, uint8_t flags,
                                   std::initializer_list<ByteView> body) const noexcept {
    size_t size = 0;
    for (const auto piece : body) size += piece.size();
    if (size > most_bytes) return false;
    const auto header = wire::encode(wire::Kind::call, flags, number, static_cast<uint32_t>(size));
    return transport.put_alone(index, header, body) || out->put_alone(header, body);
  }
};

class NextHops {
 public:
  // Null when other code went to that node last, or nothing since forget().
  NextHop* find(uint32_t node, const target::Code* code) noexcept {
    NextHop* const hop = hops_.find(node);
    return hop != nullptr && hop->code == code ? hop : nullptr;
  }
  // One row for each peer, even if it goes by several numbers: what it keeps stands there. May throw std::bad_alloc.
  void note(uint32_t node, const NextHop& hop) {
    auto& row = hops_.row(node);
    if (row.out != hop.out)
      hops_.each([&](NextHop& other) {
        if (other.out == hop.out) other = {};
      });
    row = hop;
  }
  // Some link may no more be written to at once, or some code is about to be freed.
  void forget() noexcept { hops_.clear(); }

 private:
  NearTable<NextHop, 32> hops_;  // by node
};

}  // namespace tc::node
