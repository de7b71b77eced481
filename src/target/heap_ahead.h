// SPDX-License-Identifier: Apache-2.0
//
// Memory of the heap that the system has given before code arrives that needs it. Where a record of ours is the first in
// its page, the system's handing it over takes longer than everything else that loading a small ifunc does.
#pragma once

namespace tc::target {

// Sees to it that the calling thread's next few allocations, of some dozen ifuncs' size, find memory that is there already.
// A system call; nothing where the C library or the kernel cannot be asked for it. Threads: any.
void map_heap_ahead() noexcept;

}  // namespace tc::target
