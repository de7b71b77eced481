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
  uint32_t number = 0;      // of the code, on that link
  uint32_t index = 0;       // of its connection
  uint32_t most_bytes = 0;  // of a call

  // `transport`: whose connection it is. `way_home`: of the route, if any. False: no room now, or too long.
  bool send(transport::Transport& transport, const wire::CallTicket& ticket, ByteView way_home,
            ByteView payload) const noexcept {
    const auto size = wire::ticket_bytes + way_home.size() + payload.size();
    if (size > most_bytes) return false;
    const auto flags = static_cast<uint8_t>(wire::flag_token | (way_home.empty() ? 0 : wire::flag_route));
    const auto header = wire::encode(wire::Kind::call, flags, number, static_cast<uint32_t>(size));
    const auto body = {wire::bytes_of(ticket), way_home, payload};
    return transport.put_alone(index, header, body) || out->put_alone(header, body);
  }
};

class NextHops {
 public:
  // Null when other code went to that node last, or nothing since forget().
  const NextHop* find(uint32_t node, const target::Code* code) noexcept {
    const NextHop* const hop = hops_.find(node);
    return hop != nullptr && hop->code == code ? hop : nullptr;
  }
  // May throw std::bad_alloc.
  void note(uint32_t node, const NextHop& hop) { hops_.row(node) = hop; }
  // Some link may no more be written to at once, or some code is about to be freed.
  void forget() noexcept { hops_.clear(); }

 private:
  NearTable<NextHop, 32> hops_;  // by node
};

}  // namespace tc::node
