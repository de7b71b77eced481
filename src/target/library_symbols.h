// SPDX-License-Identifier: Apache-2.0
//
// Finds symbols in the shared libraries that an ifunc declares, for a node and for a cell.
//
// Threads: any.
#pragma once

#include <span>
#include <string>

namespace tc::target {

// Returns the address of a symbol that one of these libraries (handles of dlopen) defines itself; null: none does. dlsym also
// looks into a library's own dependencies: that an ifunc may use libsqlite3 does not give it libc. The vDSO counts as a part of
// the C library, which gives its functions (time, gettimeofday) out as its own. Where a library defines the symbol, the
// process's is taken, as for all of the process's own code: with an allocator in front of libc's, free() must be that of the
// allocator whose memory strdup() returns.
void* find_symbol(std::span<void* const> libraries, const std::string& symbol) noexcept;

}  // namespace tc::target
