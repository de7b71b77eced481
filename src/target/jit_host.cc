// SPDX-License-Identifier: Apache-2.0
#include "target/jit_host.h"

#include <dlfcn.h>

#include <filesystem>

#include "base/plugin.h"

namespace tc::target {

namespace {

constexpr const char* plugin_name = "libthreechains_jit.so";

// The JIT plug-in links libLLVM.so, unless the build is self-contained. Where a program has loaded another LLVM, without
// symbol versions and for all to see (TensorFlow and Triton bring such), the loader would bind libLLVM.so to that one's
// functions, and registering the same command-line options twice ends the process. So it is looked for before.
// TC_ERR_UNSUPPORTED when the plug-in must not be loaded into this process; the sentence names the file that is in the way.
#ifdef TC_LLVM_SYMBOL_VERSION

Status check_no_foreign_llvm() {
  // llvm::cl::Option::addArgument(), as the loader looks it up for libLLVM.so: what has no versions matches as well.
  constexpr const char* symbol = "_ZN4llvm2cl6Option11addArgumentEv";
  Dl_info info;
  void* const found = dlvsym(RTLD_DEFAULT, symbol, TC_LLVM_SYMBOL_VERSION);
  if (found == nullptr || dladdr(found, &info) == 0 || info.dli_fname == nullptr) return {};
  if (std::filesystem::path(info.dli_fname).filename().string().starts_with("libLLVM")) return {};
  return fail(TC_ERR_UNSUPPORTED,
              "{} has an LLVM of its own, whose symbols hide those of ours: load it without RTLD_GLOBAL, use another "
              "process, or use the Python wheel of Three-Chains, whose LLVM is hidden",
              info.dli_fname);
}

#else

Status check_no_foreign_llvm() { return {}; }

#endif

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

Result<Jit*> JitHost::open() {
  if (const auto alone = check_no_foreign_llvm(); !alone)
    return context("the JIT plug-in is not loaded", alone.error());
  const auto library = open_plugin(plugin_name, plugin_);
  if (!library)
    return fail(TC_ERR_UNSUPPORTED,
                "the JIT plug-in cannot be loaded ({}); install {}, name it with the setting jit-plugin, or build the "
                "ifunc with an object slice for {}",
                library.error().message, plugin_name, "this node's CPU");
  const auto found = find_in_plugin(*library, jit_factory_name);
  if (!found) return context("the JIT plug-in", found.error());
  const auto make = reinterpret_cast<JitFactory>(*found);
  jit_.reset(make(jit_plugin_version));
  if (jit_ == nullptr)
    return fail(TC_ERR_UNSUPPORTED,
                "the JIT plug-in does not speak version {} of its interface: install the one that "
                "belongs to this library",
                jit_plugin_version);
  ready_.store(jit_.get(), std::memory_order_release);
  return jit_.get();
}

Result<JitCode> JitHost::link(ByteView object, const std::string& label, const SymbolResolver& resolve,
                              const Variables& variables) {
  TC_ASSIGN(Jit* const jit, this->jit());
  const std::lock_guard lock(link_mutex_);
  TC_ASSIGN(auto code, jit->link(object, label, resolve, variables, exported_));
  return JitCode(*this, std::move(code));
}

}  // namespace tc::target
