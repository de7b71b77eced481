// SPDX-License-Identifier: Apache-2.0
//
// Which CPUs this process runs on. Thread: the calling one is pinned, and those that it starts.
#pragma once

namespace tc::bench {

// The number of the `index`-th CPU that this process may use; -1 when there are fewer.
int usable_cpu(int index);
// Keeps this process on it. False when there are fewer, or when the system refuses.
bool pin_to(int index);
// CPUs this process may use.
int usable_cpus();

}  // namespace tc::bench
