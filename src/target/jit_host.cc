// SPDX-License-Identifier: Apache-2.0
#include "target/jit_host.h"

#include <dlfcn.h>

#include <filesystem>
#include <vector>

namespace tc::target {

namespace {

constexpr const char* plugin_name = "libthreechains_jit.so";

// The file that this very function was loaded from: libthreechains.so, or a program that contains it.
std::filesystem::path own_folder() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(&own_folder), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  const auto path = std::filesystem::canonical(info.dli_fname, ignored);
  return path.parent_path();
}

std::vector<std::string> places(const std::string& wish) {
  if (!wish.empty()) return {wish};
  std::vector<std::string> all;
  if (const auto folder = own_folder(); !folder.empty()) {
    all.push_back((folder / plugin_name).string());
    all.push_back((folder.parent_path() / "lib" / plugin_name).string());
  }
  all.push_back(plugin_name);
  return all;
}

}  // namespace

JitCode& JitCode::operator=(JitCode&& other) noexcept {
  if (this != &other) {
    free();
    host_ = other.host_;
    code_ = std::move(other.code_);
  }
  return *this;
}

void JitCode::free() noexcept {
  if (code_ == nullptr) return;
  const std::lock_guard lock(host_->link_mutex_);  // the JIT's linker and its memory are one
  code_.reset();
}

Result<Jit*> JitHost::jit() {
  if (Jit* const jit = ready_.load(std::memory_order_acquire)) return jit;
  const std::lock_guard lock(open_mutex_);
  if (jit_ != nullptr) return jit_.get();
  if (tried_) return fail(failure_);
  tried_ = true;
  auto opened = open();
  if (!opened) failure_ = opened.error();
  return opened;
}

// The library is never closed: LLVM does not take kindly to being unloaded.
Result<Jit*> JitHost::open() {
  std::string tried;
  void* library = nullptr;
  for (const auto& place : places(plugin_)) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    const char* const words = dlerror();
    tried += fmt::format("{}{}", tried.empty() ? "" : "; ", words != nullptr ? words : place.c_str());
  }
  if (library == nullptr)
    return fail(TC_ERR_UNSUPPORTED,
                "the JIT plug-in cannot be loaded ({}); install {}, name it with the setting jit-plugin, or build the "
                "ifunc with an object slice for {}",
                tried, plugin_name, "this node's CPU");
  const auto make = reinterpret_cast<JitFactory>(dlsym(library, jit_factory_name));
  if (make == nullptr)
    return fail(TC_ERR_UNSUPPORTED, "the JIT plug-in has no function '{}': it is no plug-in of this program",
                jit_factory_name);
  jit_.reset(make(jit_plugin_version));
  if (jit_ == nullptr)
    return fail(TC_ERR_UNSUPPORTED,
                "the JIT plug-in does not speak version {} of its interface: install the one that "
                "belongs to this library",
                jit_plugin_version);
  ready_.store(jit_.get(), std::memory_order_release);
  return jit_.get();
}

Result<JitCode> JitHost::link(ByteView object, const std::string& label, const SymbolResolver& resolve) {
  TC_ASSIGN(Jit* const jit, this->jit());
  const std::lock_guard lock(link_mutex_);
  TC_ASSIGN(auto code, jit->link(object, label, resolve));
  return JitCode(*this, std::move(code));
}

}  // namespace tc::target
