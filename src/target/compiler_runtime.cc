// SPDX-License-Identifier: Apache-2.0
#include "target/compiler_runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "wire/abi_names.h"

#if defined(__aarch64__)
#define TC_RUNTIME_OF_ISA(X) TC_RUNTIME_OF_AARCH64(X)
#elif defined(__x86_64__)
#define TC_RUNTIME_OF_ISA(X) TC_RUNTIME_OF_X86_64(X)
#else
#define TC_RUNTIME_OF_ISA(X)
#endif

// Every function is only named here, never called, so its declaration need not be its true type.
#define TC_DECLARE(name) void name();
extern "C" {
TC_RUNTIME_COMMON(TC_DECLARE)
TC_RUNTIME_OF_ISA(TC_DECLARE)
// But gcc knows these by their types.
_Complex double __muldc3(double, double, double, double);
_Complex float __mulsc3(float, float, float, float);
_Complex double __divdc3(double, double, double, double);
_Complex float __divsc3(float, float, float, float);
}

namespace tc::target {

namespace {

using Entry = std::pair<std::string_view, void*>;

// LLVM makes bcmp of a memcmp when the code only tests for equality. The bcmp of libc has left POSIX.
int equal_bytes(const void* a, const void* b, size_t size) noexcept { return std::memcmp(a, b, size); }

template <class F>
void* address(F* function) noexcept {
  return reinterpret_cast<void*>(function);
}

}  // namespace

#define TC_ENTRY(name) Entry{#name, address(&name)},

void* compiler_runtime_symbol(std::string_view name) noexcept {
  using std::memcpy, std::memmove, std::memset, std::memcmp, std::strlen;
  constexpr auto& bcmp = equal_bytes;
  static const std::array table = {TC_RUNTIME_OF_C(TC_ENTRY) TC_RUNTIME_COMMON(TC_ENTRY) TC_RUNTIME_COMPLEX(TC_ENTRY)
                                       TC_RUNTIME_OF_ISA(TC_ENTRY)};
  const auto found = std::ranges::find(table, name, &Entry::first);
  return found != table.end() ? found->second : nullptr;
}

}  // namespace tc::target
