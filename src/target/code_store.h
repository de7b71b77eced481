// SPDX-License-Identifier: Apache-2.0
//
// The code that a node holds, by content id: checked, linked, ready to call, and freed again when its byte
// budget is full (main paper, III.D; docs/code-cache.md). The cold half of the code cache: the hot path reads
// only Code::entry, through the number table of its link.
//
// Thread: the node's. Compilation for the host's own CPU goes on in a thread of the store's own, whose results
// are published by one atomic store to Code::entry.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/content_id.h"
#include "base/function_ref.h"
#include "target/executions.h"
#include "target/policy.h"
#include "wire/bundle.h"

namespace tc::target {

using EntryPoint = void (*)(void* payload, size_t payload_size, void* target_args);

// Which compilation runs now.
enum class Tier : uint8_t { none = 0, object = 1, baseline = 2 /* JIT, low effort */, tuned = 3 /* O3 for this CPU */ };

// One ifunc's code. Stays where it is until the store evicts it, which happens only inside CodeStore calls.
class alignas(64) Code {
 public:
  std::atomic<EntryPoint> entry{nullptr};
  uint64_t last_used = 0;  // set by the executor to its own tick; the smallest is evicted first
  bool pinned = false;     // never evicted: it may run in threads that are not counted
  uint8_t alignment_log2 = 4;

  const ContentId& id() const noexcept { return bundle->id(); }
  const std::string& name() const noexcept { return bundle->manifest().name; }
  std::unique_ptr<Bundle> bundle;  // kept whole: forwarding needs it
  std::atomic<Tier> tier{Tier::none};
  // The code may be linked anew, or freed, while it runs. So a thread that runs it is inside
  // CodeStoreOptions::executions, and reads `entry` there. Set for good, before the entry point that needs it is stored.
  // Always false without `executions`.
  std::atomic<bool> counted{false};
  uint64_t load_ns = 0;  // what loading took
  size_t bytes = 0;      // what it costs against the budget

  virtual ~Code() = default;

 protected:
  Code() = default;
};

struct CodeStoreOptions {
  size_t budget_bytes = 64u * 1024 * 1024;  // bundles, images and JIT'd code together
  bool use_objects = true;
  bool use_bitcode = true;
  bool tune = true;                            // compile bitcode for this CPU in the background, swap it in
  TargetTriple triple = TargetTriple::host();  // whose slices run here; tests pretend to be another processor
  std::string cache_dir;                       // compiled objects persist here; empty: nowhere
  std::string jit_plugin;  // path of libthreechains_jit.so; empty: beside this library, then the loader's path
  // Where any thread may run code at any time: what tells when replaced code is left. It must outlive the store. Null: all
  // is one thread's.
  Executions* executions = nullptr;
  // Takes what costs time but fails no ifunc, in a sentence for the operator. Any thread. Null: it is dropped.
  std::function<void(const std::string&)> warn;
};

struct CodeStoreStats {
  uint64_t loads = 0, evictions = 0, object_loads = 0, baseline_compiles = 0, tuned_swaps = 0;
  uint64_t cache_hits = 0, cache_misses = 0;
  uint64_t rebinds = 0;  // of ifuncs, to newer libraries
  uint64_t retired = 0;  // pieces of code that were replaced and wait for their last call to end: now
  size_t bytes = 0;      // now
  size_t codes = 0;      // now
};

// Who sends code: what a library of that sender may export.
struct Sender {
  Sender(std::string_view from = {}) noexcept : host(from) {}  // NOLINT: a host alone is a sender
  Sender(const char* from) noexcept : host(from) {}            // NOLINT
  std::string_view host;                                       // as peers' addresses have it; empty: this node itself
  // Asked besides the policy's rules. Empty: anything.
  std::function<Status(const std::string& symbol)> may_export;
};

class CodeStore {
 public:
  // `policy` must outlive the store. Called with each code just before it is freed, so that number tables can
  // forget it.
  using OnEvict = std::function<void(Code&)>;
  static Result<std::unique_ptr<CodeStore>> create(CodeStoreOptions options, Policy& policy, OnEvict on_evict);
  virtual ~CodeStore() = default;

  // Null when this node does not hold it.
  virtual Code* find(const ContentId& id) noexcept = 0;

  // Takes a checked bundle, links or compiles its slice for this node and keeps it. Object slice first, where
  // there is one. Holding it already is fine: slices and signatures that were missing are kept, the code stays as it is.
  // A library's exports bind ifuncs that come from now on, and bind those anew that use an older version of it, which is
  // freed; when one of them does not link to the new version, nothing changes and the library is refused (2021 paper,
  // section 2.1). What `from` may export is asked for what the library exports and for what the version that it replaces
  // does.
  // Errors name the ifunc: TC_ERR_NO_SLICE, TC_ERR_DENIED, TC_ERR_UNRESOLVED, TC_ERR_COMPILE, TC_ERR_MALFORMED,
  // TC_ERR_LIMIT (does not fit the budget), TC_ERR_VERSION (ABI), TC_ERR_UNSUPPORTED (needs a JIT there is not).
  // `object`, when not empty: what a helper compiled of its bitcode for this node, used as if it were the bundle's
  // object slice, and kept with the code.
  virtual Result<Code*> load(Bundle bundle, const Sender& from = {}, Bytes object = {}) = 0;

  // It could run here but for an object slice: there is bitcode for this node, and nothing here to compile it.
  virtual bool lacks_object(const Bundle& bundle) const noexcept = 0;

  // Shows all codes. `show` must not change the store.
  virtual void each(FunctionRef<void(const Code&)> show) const = 0;

  // Frees one code now. It must not be running.
  virtual void evict(const ContentId& id) = 0;

  // Housekeeping between frames: cheap when nothing is due.
  virtual void housekeeping() noexcept = 0;

  // Waits until nothing is being compiled in the background (tests and benchmarks). False when the deadline
  // passed first.
  virtual bool wait_until_tuned(uint64_t deadline_ms) = 0;

  // Loads the JIT plug-in and runs it once, so that the first ifunc does not pay for it. Nothing to do, and
  // fine, when bitcode is not used.
  virtual Status warm_up() = 0;

  virtual CodeStoreStats stats() const noexcept = 0;
};

// Source-side functions of a bundle (payload_get_max_size, payload_init), loaded into this process with the
// same loader. The source trusts its own bundles: libraries they declare are opened without asking a policy.
class SourceCode {
 public:
  // Finds the slice with role `source` for this host. TC_ERR_NO_SLICE, or the loader's errors.
  static Result<std::unique_ptr<SourceCode>> load(const Bundle& bundle);
  virtual ~SourceCode() = default;
  // The address of an entry point by its name in slices (wire/abi_names.h), null where the bundle has none.
  virtual void* symbol(std::string_view name) const noexcept = 0;
};

}  // namespace tc::target
