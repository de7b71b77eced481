// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tc::bench {

// The number of the `index`-th CPU that this process may use; -1 when there are fewer.
int usable_cpu(int index);
// Keeps this process on it. False when there are fewer, or the system says no.
bool pin_to(int index);
// CPUs this process may use.
int usable_cpus();

}  // namespace tc::bench
