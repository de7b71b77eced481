// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace tc::memory {

// Makes the system map these pages, the first of which begins at `begin`, before they are used. Their content stays.
// False where it cannot: Linux before 5.14. Thread: any.
inline bool populate(void* begin, size_t bytes) noexcept { return madvise(begin, bytes, MADV_POPULATE_WRITE) == 0; }

}  // namespace tc::memory
