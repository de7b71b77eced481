// SPDX-License-Identifier: Apache-2.0
//
// What the two processes of `ifunc bench tsi` do together, one function for each side. Thread: one in each process.
#pragma once

#include <string_view>

#include "floor/floor.h"
#include "tsi/am_peer.h"
#include "tsi/ifunc_peer.h"

namespace tc::bench {

// `raw_flags` (latency alone) and `raw`, the ring or the socket: the floor, without a runtime. `am_batched` and
// `cached_batched` hand over 64 calls at a time. `plain` and `plain_batched` are cached calls without encryption, beside
// encrypted ones.
enum class Mode : uint8_t {
  raw_flags,
  raw,
  am,
  am_batched,
  cached,
  cached_batched,
  uncached_object,
  uncached_bitcode,
  plain,
  plain_batched
};
std::string_view mode_name(Mode mode) noexcept;
Result<Mode> parse_mode(std::string_view name);

struct Peers {
  Floor floor;
  std::unique_ptr<AmPeer> am;
  std::unique_ptr<IfuncPeer> ifunc;
  std::unique_ptr<IfuncPeer> plain;  // null unless `ifunc` is encrypted

  void poll() {
    am->progress();
    ifunc->poll();
    if (plain != nullptr) plain->poll();
  }
};

// Half of the round trip of a TSI call there and one back, in ns, over `rounds` of them.
Result<double> measure_latency(Peers& peers, Mode mode, uint64_t rounds);
Status answer_latency(Peers& peers, Mode mode, uint64_t rounds);

// Calls per second that ran at the target, from the first send until the source knows that all ran.
Result<double> measure_rate(Peers& peers, Mode mode, uint64_t calls);
Status answer_rate(Peers& peers, Mode mode, uint64_t calls);

}  // namespace tc::bench
