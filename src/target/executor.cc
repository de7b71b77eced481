// SPDX-License-Identifier: Apache-2.0
#include "target/executor.h"

#include <threechains/ifunc.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
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

constinit thread_local IfuncHost* current_host = nullptr;
constinit thread_local uint8_t leaving = 0;

namespace {

std::string_view text(const char* c_string) noexcept { return c_string != nullptr ? c_string : ""; }

ByteView view(const void* bytes, size_t size) noexcept {
  return bytes != nullptr ? ByteView(static_cast<const std::byte*>(bytes), size) : ByteView();
}

using Entry = std::pair<std::string_view, void*>;

// LLVM makes bcmp of a memcmp when the code only tests for equality. The bcmp of libc has left POSIX.
int equal_bytes(const void* a, const void* b, size_t size) noexcept { return std::memcmp(a, b, size); }

template <class F>
void* address(F* function) noexcept {
  return reinterpret_cast<void*>(function);
}

}  // namespace

// The functions of <threechains/ifunc.h>, as injected code finds them. They lead to the node that runs the ifunc on this
// thread; called from anywhere else they say so and do nothing.
extern "C" {

uint32_t tc_id(void) { return current_host != nullptr ? current_host->node_id() : 0; }

uint32_t tc_count(void) { return current_host != nullptr ? current_host->node_count() : 1; }

void* tc_data(const char* name, size_t* size) {
  return current_host != nullptr ? current_host->data(text(name), size) : nullptr;
}

tc_status_t tc_reply(const void* bytes, size_t size) {
  return current_host != nullptr ? current_host->reply(view(bytes, size)) : TC_ERR_INVALID;
}

tc_status_t tc_forward(uint32_t node, const void* payload, size_t size) {
  return current_host != nullptr ? current_host->forward(node, view(payload, size)) : TC_ERR_INVALID;
}

tc_status_t tc_forward_as(uint32_t node, const char* name, const void* payload, size_t size) {
  return current_host != nullptr ? current_host->forward_as(node, text(name), view(payload, size)) : TC_ERR_INVALID;
}

tc_status_t tc_inject(uint32_t node, const char* name, const void* payload, size_t size) {
  return current_host != nullptr ? current_host->inject(node, text(name), view(payload, size)) : TC_ERR_INVALID;
}

void tc_fail(int32_t code, const char* message) {
  if (current_host != nullptr) current_host->fail(code, text(message));
}

void tc_log(int level, const char* message) {
  if (current_host != nullptr) current_host->log(level, text(message));
}

uint8_t* tc_leaving(void) { return &leaving; }

}  // extern "C"

void* abi_symbol(std::string_view name) noexcept {
#define TC_ADDRESS(function) reinterpret_cast<void*>(&(function)),
  static void* const addresses[] = {TC_ABI_FUNCTIONS(TC_ADDRESS) TC_ABI_OF_TOOLCHAIN(TC_ADDRESS)};
#undef TC_ADDRESS
  const auto* const found = std::ranges::find(abi_names::functions, name);
  return found != std::end(abi_names::functions) ? addresses[found - std::begin(abi_names::functions)] : nullptr;
}

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
