// SPDX-License-Identifier: Apache-2.0
//
// Memory for code that one process links and another one runs. Both map it at the same addresses, so that what was linked
// runs unchanged. The linking process writes code through another mapping and cannot run it (Arena::Kind::exported). The
// other one calls map_exported(): it can run the code, and never write it. Both read and write the data.
//
// What the other process may do to the data, it does to itself: the linking process writes data, and reads none of it.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

namespace tc::memory {

// What the other process must know. A plain value; the descriptors belong to the arena, and are sent as copies.
struct ExportedMemory {
  int code = -1;
  int data = -1;
  uintptr_t address = 0;  // of the code; the data follows it
  size_t half_bytes = 0;  // of each of both
};

// Maps both halves into this process, where they lie in the one that links. They stay as long as this process; the
// descriptors may be closed afterwards. A later mapping of theirs cannot make the code writable, because it is sealed. This
// must come before what forbids the process new executable memory. TC_ERR_NO_MEMORY: these addresses are taken, which
// another start mostly changes, for the system places the libraries of a process at random. TC_ERR_UNSUPPORTED: it must
// not be executed here.
//
// On Arm and RISC-V, a thread calls memory::sync_instructions() for what is new before it runs that for the first time.
Status map_exported(const ExportedMemory& memory);

}  // namespace tc::memory
