// SPDX-License-Identifier: Apache-2.0
//
// What the two processes of `ifunc bench mixed` do together, one function for each side. Both clients are in the process
// that measures, and one thread polls them, so that they do not compete for a CPU. Thread: one in each process.
#pragma once

#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "common/processes.h"
#include "mixed/client.h"

namespace tc::bench {

// Where a long call runs: as an ifunc, in the handler of an Active Message, or on a worker thread that such a handler
// hands it to.
enum class MixedMode : uint8_t { ifunc, am, am_worker };
inline constexpr std::array mixed_modes{MixedMode::ifunc, MixedMode::am, MixedMode::am_worker};
std::string_view mode_name(MixedMode mode) noexcept;

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

// The target's process: it obeys the orders of the clients' process.
Status serve_mixed(const Arguments& arguments, Talk& talk);

}  // namespace tc::bench
