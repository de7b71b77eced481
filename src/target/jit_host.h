// SPDX-License-Identifier: Apache-2.0
//
// The JIT plug-in, loaded when it is first needed, and the rule that its linker is used by one thread at a time.
//
// Threads: any.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "target/jit_plugin.h"

namespace tc::target {

class JitHost;

// Code that the JIT linked. Its JitHost must outlive it. Destroying it frees the memory.
class JitCode {
 public:
  JitCode() = default;
  JitCode(JitHost& host, std::unique_ptr<LinkedCode> code) noexcept : host_(&host), code_(std::move(code)) {}
  JitCode(JitCode&&) noexcept = default;
  JitCode& operator=(JitCode&& other) noexcept;
  ~JitCode() { free(); }

  explicit operator bool() const noexcept { return code_ != nullptr; }
  // Null when there is no such symbol, or no code.
  void* symbol(const std::string& name) const noexcept { return code_ != nullptr ? code_->symbol(name) : nullptr; }
  size_t bytes() const noexcept { return code_ != nullptr ? code_->bytes() : 0; }
  bool holds(uintptr_t address) const noexcept { return code_ != nullptr && code_->holds(address); }
  CodePlace place_of(uintptr_t address) const noexcept { return code_->place_of(address); }
  // As that of LinkedCode.
  void* frames() const noexcept { return code_ != nullptr ? code_->frames() : nullptr; }

 private:
  void free() noexcept;
  JitHost* host_ = nullptr;
  std::unique_ptr<LinkedCode> code_;
};

class JitHost {
 public:
  // `plugin` is the path of libthreechains_jit.so; empty: beside this library, then the loader's search path.
  // `exported`: as for Jit::link, for all that it links.
  explicit JitHost(std::string plugin, memory::Arena* exported = nullptr)
      : plugin_(std::move(plugin)), exported_(exported) {}

  // Loads the plug-in on the first call. TC_ERR_UNSUPPORTED names the places that were tried and the remedy; it
  // is remembered, a missing plug-in is not looked for again.
  Result<Jit*> jit();
  // Jit::link for any thread.
  Result<JitCode> link(ByteView object, const std::string& label, const SymbolResolver& resolve,
                       const Variables& variables);

 private:
  friend class JitCode;
  Result<Jit*> open();

  const std::string plugin_;
  memory::Arena* const exported_;
  std::mutex open_mutex_;
  std::unique_ptr<Jit> jit_;
  std::atomic<Jit*> ready_{nullptr};
  Error failure_;
  bool tried_ = false;
  std::mutex link_mutex_;
};

}  // namespace tc::target
