// SPDX-License-Identifier: Apache-2.0
//
// Medians and spread of repeated measurements. The machine is noisy: a single figure is worth little, a ratio of
// medians from interleaved runs is what counts. Threads: any.
#pragma once

#include <vector>

namespace tc::bench {

struct Summary {
  double median = 0;
  double low = 0;   // the first quartile
  double high = 0;  // the third
};

// The values need not be sorted. All zero when there are none.
Summary summarize(std::vector<double> values);

}  // namespace tc::bench
