// SPDX-License-Identifier: Apache-2.0
//
// The functions of <threechains/ifunc.h>, as injected code finds them. They lead to the node that runs the ifunc
// on this thread; called from anywhere else they say so and do nothing.
#include <threechains/ifunc.h>

#include <algorithm>
#include <string_view>

#include "target/ifunc_host.h"
#include "wire/abi_names.h"

namespace tc::target {

constinit thread_local IfuncHost* current_host = nullptr;
constinit thread_local uint8_t leaving = 0;

namespace {

std::string_view text(const char* c_string) noexcept { return c_string != nullptr ? c_string : ""; }

ByteView view(const void* bytes, size_t size) noexcept {
  return bytes != nullptr ? ByteView(static_cast<const std::byte*>(bytes), size) : ByteView();
}

}  // namespace

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

}  // namespace tc::target
