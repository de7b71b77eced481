// SPDX-License-Identifier: Apache-2.0
#include "memory/alias_probe.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

namespace tc::memory {

namespace {

// int f(void) { return VALUE; }
#if defined(__x86_64__)
constexpr unsigned char returns_1[] = {0xB8, 1, 0, 0, 0, 0xC3};  // mov eax, 1; ret
constexpr unsigned char returns_2[] = {0xB8, 2, 0, 0, 0, 0xC3};
#elif defined(__aarch64__)
constexpr unsigned char returns_1[] = {0x20, 0x00, 0x80, 0x52, 0xC0, 0x03, 0x5F, 0xD6};  // mov w0, #1; ret
constexpr unsigned char returns_2[] = {0x40, 0x00, 0x80, 0x52, 0xC0, 0x03, 0x5F, 0xD6};
#elif defined(__riscv)
constexpr unsigned char returns_1[] = {0x05, 0x45, 0x82, 0x80};  // c.li a0, 1; c.ret
constexpr unsigned char returns_2[] = {0x09, 0x45, 0x82, 0x80};
#else
#error "two functions of this architecture are needed"
#endif

int run(std::byte* code, std::byte* writable, const unsigned char* bytes, size_t size) noexcept {
  std::memcpy(writable, bytes, size);
  sync_instructions(code, size);
  return reinterpret_cast<int (*)()>(code)();
}

}  // namespace

void sync_instructions(std::byte* begin, size_t bytes) noexcept {
  auto* const first = reinterpret_cast<char*>(begin);
  __builtin___clear_cache(first, first + bytes);
}

void sync_other_threads() noexcept {
#if !defined(__x86_64__)
  // Registering again is cheap and does nothing. Where the kernel has neither, the other thread's next system call or
  // interrupt has the same effect.
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
  (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
#endif
}

bool new_code_runs(std::byte* code, std::byte* writable) noexcept {
  const bool first = run(code, writable, returns_1, sizeof returns_1) == 1;
  const bool second = run(code, writable, returns_2, sizeof returns_2) == 2;
  std::memset(writable, 0, sizeof returns_1);
  return first && second;
}

}  // namespace tc::memory
