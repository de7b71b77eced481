// SPDX-License-Identifier: Apache-2.0
#include "mixed/burn_work.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "mixed/burn.h"

namespace tc::bench {

BurnWork BurnWork::of_us(uint64_t us) {
  constexpr uint64_t rounds = 200'000;
  constexpr int samples = 40;
  // The fastest sample is the one that nothing else on the machine disturbed.
  uint64_t least_ns = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < samples; ++i) {
    const auto started = now_ns();
    const auto result = burn(rounds);
    asm volatile("" : : "r"(result));  // or it would not be done at all
    least_ns = std::min(least_ns, now_ns() - started);
  }
  const auto rounds_per_ns = static_cast<double>(rounds) / static_cast<double>(std::max<uint64_t>(least_ns, 1));
  const auto wanted = std::max<uint64_t>(static_cast<uint64_t>(static_cast<double>(us) * 1000 * rounds_per_ns), 1);
  return {wanted, burn(wanted)};
}

}  // namespace tc::bench
