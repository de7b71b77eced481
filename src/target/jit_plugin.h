// SPDX-License-Identifier: Apache-2.0
//
// The interface of the JIT plug-in, libthreechains_jit.so (target/jit), which is the only part of a node that knows LLVM.
// JitHost (jit_host.h) loads it with dlopen for the first bitcode slice, so a node that runs objects alone never maps LLVM.
// Compilation and linking are two steps, so that compiled objects can be kept on disk in between.
//
// Bitcode given to compile() has passed every check of ours; LLVM's own reader is not safe against malice. Whatever it
// holds, LLVM opens no file for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tc::memory {
class Arena;
}

namespace tc::target {

enum class Effort : uint8_t {
  baseline,  // FastISel, no optimisation: microseconds; the code is there for the first calls
  tuned,     // O3 and code generation for the CPU this process runs on: milliseconds
};

// Whether bitcode may hold assembly, inline or at file scope. LLVM's assembler is no parser for strangers: its directives read
// files, and a line of them can make gigabytes. An empty string of inline assembly, which is how barriers are written, is
// none.
enum class Assembly : uint8_t { refused, allowed };

// Where an address lies in code: so far behind that symbol; empty: no symbol is known.
struct CodePlace {
  std::string_view symbol;
  uint64_t offset = 0;
};

// Machine code linked into this process, or for another one. Destroying it frees the memory; nothing of it may be running.
class LinkedCode {
 public:
  virtual ~LinkedCode() = default;
  // Null when there is no such symbol.
  virtual void* symbol(const std::string& name) const noexcept = 0;
  virtual size_t bytes() const noexcept = 0;
  // Does the address lie in its text? Neither this nor place_of() locks or allocates.
  virtual bool holds(uintptr_t address) const noexcept = 0;
  // Of an address that it holds.
  virtual CodePlace place_of(uintptr_t address) const noexcept = 0;
  // The frame table of code for another process through which exceptions pass. That process registers it with its unwinder
  // before it runs the code, and withdraws it before this is destroyed. Null: there is none, or this process has done so.
  virtual void* frames() const noexcept = 0;
};

// Variables that code can write, by their names in slices (abi_names::variable_prefix), and where they lie.
using Variables = std::map<std::string, void*, std::less<>>;

using SymbolResolver = std::function<Result<void*>(const std::string& symbol)>;

class Jit {
 public:
  virtual ~Jit() = default;

  // Bitcode to a relocatable object. Any thread, but one call at a time for each Effort: baseline from the node's
  // thread, tuned from the tuner's or, for libraries, the node's. `label` names the ifunc in messages and debuggers.
  // TC_ERR_COMPILE with LLVM's words, or for assembly that is refused; TC_ERR_UNRESOLVED never (that is link's).
  virtual Result<Bytes> compile(ByteView bitcode, Effort effort, Assembly assembly, const std::string& label) = 0;

  // How often LLVM gave up in compile() with that effort, and with tuned in may_exchange() too: that costs memory for good. Any
  // thread.
  virtual uint64_t given_up(Effort effort) const noexcept = 0;

  // May another compilation of this bitcode go on with the variables of one that has run? False where those may hold addresses
  // of its code that mean something else to the other. Any thread, and beside compile(). Errors: those of compile().
  virtual Result<bool> may_exchange(ByteView bitcode, const std::string& label) = 0;

  // A relocatable object (ours, or a cached one: a bad one must give an error, not a crash, as far as LLVM's
  // linker allows) to code. `resolve` gives every undefined symbol its address or an error, which is passed on
  // unchanged. `variables` take the place of those that the object defines under the same names. Any thread; calls do not
  // overlap. TC_ERR_COMPILE otherwise, also for frame tables that speak of code outside of the object: an unwinder believes
  // them.
  // `exported`, when not null, is the arena of code that another process runs, and outlives the code. Nothing in this
  // process learns of such code: not the unwinder (LinkedCode::frames), and neither debuggers nor perf, which would look for
  // it here.
  virtual Result<std::unique_ptr<LinkedCode>> link(ByteView object, const std::string& label,
                                                   const SymbolResolver& resolve, const Variables& variables,
                                                   memory::Arena* exported) = 0;

  // Everything that a compiled object depends on besides its bitcode: LLVM version, CPU and features, options.
  // Part of the on-disk cache's key.
  virtual std::string fingerprint(Effort effort) const = 0;

  // Compiles (baseline) and links a built-in function, so that the first ifunc does not pay for what LLVM sets up
  // once. From the thread that calls compile(baseline). Errors: what compile() and link() give.
  virtual Status warm_up() = 0;
};

// What the plug-in exports, found by dlsym under `jit_factory_name`. `version` must be jit_plugin_version. Raise it when this
// file changes, or the members of memory::Arena: the plug-in uses an exported one with its own copy of the arena's functions.
inline constexpr uint32_t jit_plugin_version = 5;
inline constexpr const char* jit_factory_name = "threechains_make_jit";
using JitFactory = Jit* (*)(uint32_t version);  // null when the versions differ; the caller deletes it

}  // namespace tc::target
