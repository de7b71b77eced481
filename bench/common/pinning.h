// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace tc::bench {

// Keeps this process on the `index`-th CPU that it may use. False when there are fewer, or the system says no.
bool pin_to(int index);
// CPUs this process may use.
int usable_cpus();

}  // namespace tc::bench
