// SPDX-License-Identifier: Apache-2.0
#include "memory/exported_memory.h"

#include <sys/mman.h>

#include <cerrno>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

namespace tc::memory {

namespace {

Status map_half(uintptr_t address, size_t bytes, int protection, int file, const char* what) {
  auto* const wanted = reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): it comes from elsewhere
  void* const at = mmap(wanted, bytes, protection, MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
  if (at == wanted) return {};
  const int reason = at == MAP_FAILED ? errno : EEXIST;
  if (at != MAP_FAILED) munmap(at, bytes);  // Linux before 4.17 takes the address for a wish
  if (reason == EEXIST)
    return fail(TC_ERR_NO_MEMORY, "the {} of ifuncs must lie at {:#x} to {:#x}, where this process has something else",
                what, address, address + bytes);
  return fail(reason == EACCES || reason == EPERM ? TC_ERR_UNSUPPORTED : TC_ERR_NO_MEMORY,
              "mapping {} bytes for the {} of ifuncs at {:#x}: {}", bytes, what, address, system_words(reason));
}

}  // namespace

Status map_exported(const ExportedMemory& memory) {
  TC_CHECK(map_half(memory.address, memory.half_bytes, PROT_READ | PROT_EXEC, memory.code, "code"));
  auto data =
      map_half(memory.address + memory.half_bytes, memory.half_bytes, PROT_READ | PROT_WRITE, memory.data, "data");
  if (!data) munmap(reinterpret_cast<void*>(memory.address), memory.half_bytes);  // NOLINT(performance-no-int-to-ptr)
  return data;
}

}  // namespace tc::memory
