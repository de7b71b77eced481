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

// For Landlock, as in the kernel. Headers of older ones lack the later fields, and an older kernel takes them when they are zero.
struct LandlockRules {
  uint64_t files = 0, network = 0, scopes = 0;
};

// All that this version of Landlock can forbid.
constexpr LandlockRules landlock_rules(long version) noexcept {
  int file_rights = 13;             // of version 1; each later one adds to these
  if (version >= 2) ++file_rights;  // linking across folders
  if (version >= 3) ++file_rights;  // truncation
  if (version >= 5) ++file_rights;  // ioctl of devices
  return {.files = (uint64_t{1} << file_rights) - 1,
          .network = version >= 4 ? 3U : 0U,  // bind and connect of TCP
          .scopes = version >= 6 ? 3U : 0U};  // abstract sockets and signals
}

}  // namespace tc::cell
