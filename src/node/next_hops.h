// SPDX-License-Identifier: Apache-2.0
//
// Where running code sends itself on: of each node what it takes to send one more call of the code that went there last.
// With more nodes than cores the link to it is cold, and need not be touched.
//
// Thread: the node's.
#pragma once

#include <cstdint>
#include <vector>

#include "transport/stream.h"

namespace tc::target {
class Code;
}

namespace tc::node {

struct NextHop {
  transport::OutStream* out = nullptr;
  const target::Code* code = nullptr;
  uint32_t number = 0;      // of the code, on that link
  uint64_t most_bytes = 0;  // of a call

  // `way_home`: of the route, if any. False: no room now, or too long.
  bool send(const wire::CallTicket& ticket, ByteView way_home, ByteView payload) const noexcept {
    const auto size = wire::ticket_bytes + way_home.size() + payload.size();
    if (size > most_bytes) return false;
    const auto flags = static_cast<uint8_t>(wire::flag_token | (way_home.empty() ? 0 : wire::flag_route));
    const auto header = wire::encode(wire::Kind::call, flags, number, static_cast<uint32_t>(size));
    return out->put_alone(header, {wire::bytes_of(ticket), way_home, payload});
  }
};

class NextHops {
 public:
  // Null when other code went to that node last, or nothing since forget().
  const NextHop* find(uint32_t node, const target::Code* code) const noexcept {
    return node < hops_.size() && hops_[node].code == code ? &hops_[node] : nullptr;
  }
  void note(uint32_t node, const NextHop& hop) {
    if (node >= hops_.size()) hops_.resize(size_t{node} + 1);
    hops_[node] = hop;
  }
  // Some link may no more be written to at once, or some code is about to be freed.
  void forget() noexcept { hops_.clear(); }

 private:
  std::vector<NextHop> hops_;  // by node
};

}  // namespace tc::node
