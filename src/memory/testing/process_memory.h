// SPDX-License-Identifier: Apache-2.0
//
// What this process has mapped and resident, as the kernel counts it, and which of its memory may do what.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tc::memory::testing {

struct ProcessMemory {
  size_t mappings = 0;
  size_t mapped_bytes = 0;  // of addresses, whatever lies there
  size_t resident_bytes = 0;
};
ProcessMemory process_memory();

// "r-x" where memory can be read and executed; empty where nothing is mapped.
std::string protection_of(const std::byte* at);
// The page has memory of its own already, so that its first use costs no page fault.
bool is_resident(const std::byte* at);
// The numbers of all descriptors below 256 that are open.
std::vector<int> open_descriptors();

// Where this is false, images cannot share mappings: the system forbids to execute memfds.
bool system_runs_memfds();
// Where this is false, no other process can run what this one links: Linux before 5.1.
bool system_seals_future_writes();

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
