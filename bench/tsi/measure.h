// SPDX-License-Identifier: Apache-2.0
//
// What the two processes of `ifunc bench tsi` do together, one function for each side. Thread: one in each process.
#pragma once

#include <string_view>

#include "common/processes.h"
#include "floor/floor.h"
#include "tsi/am_peer.h"
#include "tsi/ifunc_peer.h"

namespace tc::bench {

// `raw_flags` (latency alone) and `raw`, the ring or the socket: the floor, without a runtime. `am_batched` and
// `cached_batched` hand over 64 calls at a time. `plain` and `plain_batched` are cached calls without encryption,
// beside encrypted ones.
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

struct Peers {
  Floor floor;
  std::unique_ptr<AmPeer> am;
  std::unique_ptr<IfuncPeer> ifunc;
  std::unique_ptr<IfuncPeer> plain;  // null unless `ifunc` is encrypted

  Status create(const BenchTransport& transport);  // all but the floor
  Result<std::string> addresses() const;           // three words, of the same
  Status use(SliceForm form);                      // from now on calls carry the TSI ifunc in this form
  void poll();
};

// Half of the round trip of a TSI call there and one back, in ns, over `rounds` of them.
Result<double> measure_latency(Peers& peers, Mode mode, uint64_t rounds);
// Calls per second that ran at the target, from the first send until the source knows that all ran.
Result<double> measure_rate(Peers& peers, Mode mode, uint64_t calls);
// "Lookup and execution" of the paper's Tables I-III: the time that the target spends on a frame that has arrived,
// without any transport. The frames of cached calls lie in memory, and the node's own receiver runs them. ns per call
// of the cached TSI ifunc. `calls` frames are run `rounds` times; the best round counts.
Result<double> cached_dispatch_ns(size_t calls, int rounds);

// The target's process: it obeys the orders of the source.
Status serve_tsi(const Arguments& arguments, Talk& talk);

}  // namespace tc::bench
