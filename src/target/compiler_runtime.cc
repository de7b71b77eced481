// SPDX-License-Identifier: Apache-2.0
#include "target/compiler_runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

// Every function is only named here, never called, so its declaration need not be its true type.
// clang-format off
#define TC_RUNTIME_COMMON(X) \
  X(__divti3) X(__modti3) X(__udivti3) X(__umodti3) X(__udivmodti4) X(__multi3) X(__ashlti3) X(__ashrti3) \
  X(__lshrti3) X(__negti2) X(__clzti2) X(__ctzti2) X(__ffsti2) X(__popcountdi2) X(__popcountti2) X(__paritydi2) \
  X(__parityti2) X(__bswapsi2) X(__bswapdi2) X(__cmpti2) X(__ucmpti2) X(__powisf2) X(__powidf2) X(__fixsfti) \
  X(__fixdfti) X(__fixunssfti) X(__fixunsdfti) X(__floattisf) X(__floattidf) X(__floatuntisf) X(__floatuntidf)
// clang-format on

#if defined(__aarch64__)
#define TC_ATOMIC_ORDERS(X, name) X(name##_relax) X(name##_acq) X(name##_rel) X(name##_acq_rel)
#define TC_ATOMIC_SIZES(X, name) \
  TC_ATOMIC_ORDERS(X, name##1) TC_ATOMIC_ORDERS(X, name##2) TC_ATOMIC_ORDERS(X, name##4) TC_ATOMIC_ORDERS(X, name##8)
#define TC_RUNTIME_OF_ISA(X)           \
  TC_ATOMIC_SIZES(X, __aarch64_cas)    \
  TC_ATOMIC_ORDERS(X, __aarch64_cas16) \
  TC_ATOMIC_SIZES(X, __aarch64_swp)    \
  TC_ATOMIC_SIZES(X, __aarch64_ldadd)  \
  TC_ATOMIC_SIZES(X, __aarch64_ldclr) TC_ATOMIC_SIZES(X, __aarch64_ldeor) TC_ATOMIC_SIZES(X, __aarch64_ldset)
#else
#define TC_RUNTIME_OF_ISA(X)
#endif

#define TC_RUNTIME_COMPLEX(X) X(__muldc3) X(__mulsc3) X(__divdc3) X(__divsc3)

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

// bcmp is what LLVM makes of a memcmp whose order nobody asks for; libc's own has left POSIX.
int equal_bytes(const void* a, const void* b, size_t size) noexcept { return std::memcmp(a, b, size); }

template <class F>
void* address(F* function) noexcept {
  return reinterpret_cast<void*>(function);
}

}  // namespace

#define TC_ENTRY(name) Entry{#name, address(&name)},

void* compiler_runtime_symbol(std::string_view name) noexcept {
  static const std::array table = {Entry{"memcpy", address(&std::memcpy)},
                                   Entry{"memmove", address(&std::memmove)},
                                   Entry{"memset", address(&std::memset)},
                                   Entry{"memcmp", address(&std::memcmp)},
                                   Entry{"bcmp", address(&equal_bytes)},
                                   Entry{"strlen", address(&std::strlen)},
                                   TC_RUNTIME_COMMON(TC_ENTRY) TC_RUNTIME_COMPLEX(TC_ENTRY)
                                       TC_RUNTIME_OF_ISA(TC_ENTRY)};
  const auto found = std::ranges::find(table, name, &Entry::first);
  return found != table.end() ? found->second : nullptr;
}

}  // namespace tc::target
