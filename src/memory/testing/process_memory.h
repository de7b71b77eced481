// SPDX-License-Identifier: Apache-2.0
//
// What this process has mapped and resident, as the kernel counts it.
#pragma once

#include <cstddef>

namespace tc::memory::testing {

struct ProcessMemory {
  size_t mappings = 0;
  size_t resident_bytes = 0;
};
ProcessMemory process_memory();

// What a test allows for the allocator's own ups and downs. A sanitizer keeps freed memory back on purpose.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr size_t resident_slack = size_t{1} << 30;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr size_t resident_slack = size_t{1} << 30;
#else
inline constexpr size_t resident_slack = 2 * 1024 * 1024;
#endif
#else
inline constexpr size_t resident_slack = 2 * 1024 * 1024;
#endif

}  // namespace tc::memory::testing
