// SPDX-License-Identifier: Apache-2.0
#include "target/heap_ahead.h"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "target/populate.h"

namespace tc::target {

// glibc serves what fits nowhere else from the end of its heap, and this block too: freed, it is what comes next there.
// Other allocators may map such a block for itself and unmap it again, which would help nobody.
void map_heap_ahead() noexcept {
#ifdef __GLIBC__
  constexpr size_t ahead_bytes = size_t{32} * 1024;
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  void* const block = std::malloc(ahead_bytes);
  if (block == nullptr) return;
  // The page that the block begins in is in use before it, so it is there.
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(block) + page - 1) & ~(page - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(block) + ahead_bytes;
  (void)populate(reinterpret_cast<void*>(begin), end - begin);
  std::free(block);
#endif
}

}  // namespace tc::target
