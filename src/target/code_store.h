// SPDX-License-Identifier: Apache-2.0
//
// The code that a node holds, by content id: loaded, ready to call, and freed again when its byte budget is full (main
// paper, III.D; docs/code-cache.md). The cold half of the code cache: the hot path reads only the first line of Code,
// through the number table of its link.
//
// With a policy that is foreign (Policy::is_foreign), all of its code is for another process, which maps exported(). Then
// nothing here may call Code::entry: it is an address there. Who lets the other process run code also says when it runs,
// with Code::pinned or begin_use().
//
// Thread: the node's. Compilation for the host's own CPU goes on in a thread of the store's own (Tuner).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "target/code.h"
#include "target/code_linker.h"
#include "target/fatal_bitcode.h"
#include "target/tuner.h"

namespace tc::target {

struct CodeStoreOptions {
  size_t budget_bytes = 64u * 1024 * 1024;  // bundles, images and JIT'd code together
  bool use_objects = true;
  bool use_bitcode = true;
  bool tune = true;                            // compile bitcode for this CPU in the background, swap it in
  TargetTriple triple = TargetTriple::host();  // whose slices run here; tests pretend to be another processor
  std::string cache_dir;                       // compiled objects persist here; empty: nowhere
  std::string jit_plugin;  // path of libthreechains_jit.so; empty: beside this library, then the loader's path
  // Any thread may run any code at any time. So code that was replaced is kept until the owner of the store, which
  // counts those threads, calls free_replaced(). False: one thread runs everything.
  bool keep_replaced = false;
  // The node may hand calls to other threads, with begin_use() and end_use().
  bool has_other_threads = false;
  // Whose last words name code at which LLVM ends the process; null: nobody's do. Must outlive the store.
  const IfuncHost* node = nullptr;
  // Shared by all stores of a node.
  std::shared_ptr<FatalBitcode> fatal_bitcode = std::make_shared<FatalBitcode>();
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

// Who sends code, and what it may do.
struct Sender {
  Sender(std::string_view from = {}) noexcept : host(from) {}  // NOLINT: a host alone is a sender
  Sender(const char* from) noexcept : host(from) {}            // NOLINT
  std::string_view host;                                       // as peers' addresses have it; empty: this node itself
  std::string_view label;  // for messages: "user 1000 of this host"; empty: as `host`
  // What a library of that sender may export. Asked besides the policy's rules. Empty: anything.
  std::function<Status(const std::string& symbol)> may_export;
  Assembly assembly = Assembly::refused;  // in its bitcode
};

// Codes in the order of their last use, without any work on the way of a call: the executor only writes
// Code::last_used. The queue sorts by what it last saw there, which is never later than the truth; so when the code
// at its head was not used since, no other was used earlier.
class EvictionQueue {
 public:
  void add(Code& code);
  void remove(Code& code) noexcept;
  // The code used longest ago that is not running and is not `spared`; null when there is none.
  Code* least_recent(const Code* spared);
  // The latest use that the queue knows of.
  uint64_t newest() const noexcept { return queue_.empty() ? 0 : queue_.rbegin()->first; }

 private:
  std::set<std::pair<uint64_t, Code*>> queue_;
};

class CodeStore {
 public:
  // Called with each code just before it is freed, so that number tables can forget it.
  using OnFree = std::function<void(Code&)>;
  // `policy` must outlive the store. TC_ERR_NO_MEMORY; TC_ERR_UNSUPPORTED when the policy is foreign and this system cannot
  // share code with another process.
  static Result<std::unique_ptr<CodeStore>> create(CodeStoreOptions options, Policy& policy, OnFree on_free);
  CodeStore(const CodeStore&) = delete;
  CodeStore& operator=(const CodeStore&) = delete;

  // What the other process maps; its descriptors are valid as long as the store. Without one: nothing.
  memory::ExportedMemory exported() const noexcept { return linker_.exported(); }
  // The frame table of the code that begins at `entry`, which is or was Code::entry of `code`; null: none (LinkedCode::frames).
  void* frames_of(const Code& code, EntryPoint entry);

  // Null when this node does not hold it.
  Code* find(const ContentId& id) noexcept;

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
  Result<Code*> load(Bundle bundle, const Sender& from = {}, Bytes object = {});

  // Keeps a checked bundle for cells and for peers, and links nothing of it here: neither LLVM nor this process's unwinder
  // sees it. load() links it later, when somebody may run it in this process. Until then a call of it that comes here all
  // the same fails. A library's names are taken as by load(), but nothing of this process is bound to them; so it is
  // refused while code here is bound to an older version.
  // Errors: those of load() that need no linking, TC_ERR_UNRESOLVED for a user that would lose its library.
  Result<Code*> hold(Bundle bundle, const Sender& from = {}, Bytes object = {});

  // It could run here but for an object slice: there is bitcode for this node, and nothing here to compile it.
  bool lacks_object(const Bundle& bundle) const noexcept;

  // Shows all codes. `show` must not change the store.
  void each(FunctionRef<void(Code&)> show) const;

  // The libraries that were sent here, each in the version to which code is linked now; and how often that has changed.
  std::vector<const Code*> libraries() const;
  uint64_t library_changes() const noexcept { return library_changes_; }

  // Frees one code now. It must not be running.
  void evict(const ContentId& id);

  // Housekeeping between frames: cheap when nothing is due.
  void housekeeping() noexcept;
  // The part of it that frees nothing: Code::holds() knows code that was tuned just now, and may have run already. May throw
  // std::bad_alloc.
  void adopt();

  // A call of that code is handed to another thread. Until end_use(), with what this returns, the code and the libraries that
  // it is linked to stay in memory, also when they are freed meanwhile; then they count against no budget.
  uint64_t begin_use(Code& code);
  void end_use(Code& code, uint64_t use) noexcept;

  // Waits until nothing is being compiled in the background (tests and benchmarks). False when the deadline
  // passed first.
  bool wait_until_tuned(uint64_t deadline_ms);

  // Loads the JIT plug-in and runs it once, so that the first ifunc does not pay for it. Nothing to do, and
  // fine, when bitcode is not used.
  Status warm_up();

  // With CodeStoreOptions::keep_replaced: pieces of code that no entry point leads to any more, and that wait to be freed.
  // Their bytes count against the budget.
  size_t replaced() const noexcept { return replaced_.size(); }
  // Frees the oldest `count` of them. No thread may be inside of these.
  void free_replaced(size_t count) noexcept;

  CodeStoreStats stats() const noexcept;

 private:
  CodeStore(CodeStoreOptions options, Policy& policy, OnFree on_free, std::unique_ptr<memory::Arena> arena,
            std::unique_ptr<DiskCache> cache);

  // Holding
  Result<std::unique_ptr<Code>> make_code(Bundle bundle, const Sender& from, Bytes object);
  Result<Code*> add(std::unique_ptr<Code> code, const Sender& from);
  Result<Code*> load_new(Bundle bundle, const Sender& from, Bytes object);
  Result<Code*> hold_new(Bundle bundle, const Sender& from, Bytes object);
  Status link_held(Code& code, const Sender& from);
  Code* add_slices(Code& code, const Bundle& bundle);
  Status make_room(const Code& code);
  void tune_later(Code& code);
  void count(Code& code) noexcept;
  void free(Code& code);

  // Libraries and their users
  Result<CodeLinker::Linked> link(const Code& code);
  std::string about_libraries(const Code& code);
  Status check_exports(const std::vector<std::string>& symbols, const Sender& from) const;
  Status bind_library(Code& library, const Sender& from);
  Result<std::vector<CodeLinker::Linked>> link_users(const std::vector<Code*>& users);
  void settle_users(const std::vector<Code*>& users) noexcept;
  Code* exporting(const std::string& name);
  std::vector<Code*> users_of(const Exports& one, const Exports& other);
  void take_over(Code& code, CodeLinker::Linked linked);
  void withdraw(Code& library);

  // What was replaced
  void have_room_aside(std::span<Code* const> codes);
  void put_aside(Code& code, CodeMemory memory);
  void put_aside_all(Code& code);
  void keep_replaced(CodeMemory memory);
  void retire();

  const CodeStoreOptions options_;
  Policy& policy_;
  const OnFree on_free_;
  CodeLinker linker_;
  std::unordered_map<ContentId, std::unique_ptr<Code>> codes_;
  EvictionQueue queue_;
  std::vector<Code*> retiring_;
  std::vector<CodeMemory> replaced_;  // the oldest first
  std::set<uint64_t> uses_;           // begin_use()
  uint64_t last_use_ = 0;
  // Freed while other threads ran code: each stays until no use is left that began before `after`.
  struct Outlived {
    uint64_t after;
    std::unique_ptr<Code> code;
  };
  std::vector<Outlived> outlived_;
  Code* last_loaded_ = nullptr;
  uint64_t library_changes_ = 0;
  CodeStoreStats stats_;
  Tuner tuner_;  // last, so that its thread ends before what it uses does
};

}  // namespace tc::target
