// SPDX-License-Identifier: Apache-2.0
//
// What keeps the code in a cell from everything else on its host, without root:
//
//     limits         memory, no files, no processes, no core dump
//     not dumpable   no other process of the user reads its memory
//     no privileges  no_new_privs, and no capability: of root's cells, too
//     Landlock       no file, no TCP port, no abstract socket and no signal to others (as far as the kernel has it)
//     seccomp        the few system calls that code and memory need; any other one is a SIGSYS, whose handler says which
//
// No memory becomes executable from then on. What is to be executable is mapped before.
//
// Thread: the cell's only one.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace tc::cell {

struct SandboxLimits {
  uint64_t memory_bytes = 0;  // beyond what is mapped now
};

// First of all: this process ends with the thread that started it. TC_ERR_DISCONNECTED: `parent` is not its parent (any more).
Status end_with_parent(uint32_t parent) noexcept;
// Closes all descriptors from `first` on.
void close_descriptors_from(unsigned first) noexcept;

// Shuts the sandbox, for good. Returns what this kernel lacks of it, for the log: "Landlock, and so …"; empty when it has
// everything. TC_ERR_UNSUPPORTED: it lacks no_new_privs or seccomp, without which a cell is none.
Result<std::string> enter_sandbox(const SandboxLimits& limits);

}  // namespace tc::cell
