// SPDX-License-Identifier: Apache-2.0
//
// "Lookup and execution" of the paper's Tables I-III: the time that the target spends on a frame that has arrived, without
// any transport. The frames of cached calls lie in memory, and the node's own receiver runs them.
// Thread: the one that measures.
#pragma once

#include "base/result.h"

namespace tc::bench {

// ns per call of the cached TSI ifunc. `calls` frames are run `rounds` times; the best round counts.
Result<double> cached_dispatch_ns(size_t calls, int rounds);

}  // namespace tc::bench
