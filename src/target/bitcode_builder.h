// SPDX-License-Identifier: Apache-2.0
//
// From a bitcode slice to linked code: through the on-disk cache when there is one, else through the JIT.
//
// Threads: any for build() with Effort::tuned, the node's alone with Effort::baseline.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>

#include "target/disk_cache.h"
#include "target/fatal_bitcode.h"
#include "target/jit_host.h"
#include "wire/bundle.h"

namespace tc::target {

class IfuncHost;

// A copy of what building needs, so that the bundle may be freed meanwhile.
struct BitcodeSlice {
  BitcodeSlice() = default;
  BitcodeSlice(const Bundle& bundle, size_t slice, Assembly assembly = Assembly::refused, std::string sender = {});

  std::string name;    // of the ifunc, for messages
  std::string sender;  // likewise, of who brought it; empty: this node itself
  ContentId id;        // of its bundle
  Slice about;
  Bytes stored;
  Assembly assembly = Assembly::refused;
  Variables variables;  // what its code uses in the place of its own: those of the code that it replaces
};

class BitcodeBuilder {
 public:
  using Warn = std::function<void(const std::string&)>;
  // `host` must outlive the builder and all that it builds; `cache`, `warn`, `node` (CodeStoreOptions) and `fatal` may be null.
  BitcodeBuilder(JitHost& host, std::unique_ptr<DiskCache> cache, Warn warn = nullptr, const IfuncHost* node = nullptr,
                 std::shared_ptr<FatalBitcode> fatal = nullptr)
      : host_(host), cache_(std::move(cache)), warn_(std::move(warn)), node_(node), fatal_(std::move(fatal)) {}
  // Says something to the operator. Any thread.
  void warn(const std::string& what) const {
    if (warn_) warn_(what);
  }

  // Compiles, or takes from the cache, and links. With `keep`, what had to be compiled is put into the cache.
  Result<JitCode> build(const BitcodeSlice& slice, Effort effort, bool keep, const SymbolResolver& resolve);
  // Jit::may_exchange.
  Result<bool> may_exchange(const BitcodeSlice& slice);
  // Links what the cache holds; nothing when it does not hold it or it does not link.
  std::optional<JitCode> from_cache(const BitcodeSlice& slice, Effort effort, const SymbolResolver& resolve);

  bool has_cache() const noexcept { return cache_ != nullptr; }
  uint64_t cache_hits() const noexcept { return hits_.load(std::memory_order_relaxed); }
  uint64_t cache_misses() const noexcept { return misses_.load(std::memory_order_relaxed); }

 private:
  Result<Bytes> compile(Jit& jit, const BitcodeSlice& slice, Effort effort);
  // Does `work` with the slice's bitcode, unless its sender made LLVM give up too often, and counts when it does so again.
  template <class Value>
  Result<Value> counted(Jit& jit, const BitcodeSlice& slice, Effort effort, auto work);
  std::optional<JitCode> link_cached(const std::string& key, const BitcodeSlice& slice, const SymbolResolver& resolve);

  JitHost& host_;
  const std::unique_ptr<DiskCache> cache_;
  const Warn warn_;
  const IfuncHost* const node_;
  const std::shared_ptr<FatalBitcode> fatal_;
  std::atomic<uint64_t> hits_{0}, misses_{0};
  std::mutex
      tuned_mutex_;  // the JIT compiles one at a time of each effort; so it is known at whose bitcode LLVM gave up
};

}  // namespace tc::target
