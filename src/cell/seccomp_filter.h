// SPDX-License-Identifier: Apache-2.0
//
// The system calls that a cell may make, as a program for the kernel. Any other one is a SIGSYS: the crash record says which.
//
// Thread: any.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace tc::cell {

// For a cell whose process id is `own_pid`: it may send signals to itself alone.
std::vector<sock_filter> seccomp_filter(uint32_t own_pid);

}  // namespace tc::cell
