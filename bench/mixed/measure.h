// SPDX-License-Identifier: Apache-2.0
//
// What the clients' process of `ifunc bench mixed` times. Both clients are in it, and one thread uses them. It sleeps while
// it waits, because the target has use for all CPUs. Thread: the one that measures.
#pragma once

#include <memory>
#include <vector>

#include "mixed/client.h"

namespace tc::bench {

struct MixedClients {
  std::unique_ptr<MixedClient> first, second;
  void poll() {
    first->poll();
    second->poll();
  }
};

// Times from the first of so many long calls, which are sent at once.
struct QueueTimes {
  double first_us = 0, last_us = 0;  // until that answer
  double largest_gap_us = 0;         // between two answers
};
Result<QueueTimes> measure_queue(MixedClient& client, uint32_t calls);

// Round trips of the second client's small calls, in us: one after the other for `phase_ms`, at least one, while the
// first client has `queue` long calls in flight. Returns when the last long call is answered.
Result<std::vector<double>> measure_small_calls(MixedClients& clients, uint32_t queue, uint32_t phase_ms);

}  // namespace tc::bench
