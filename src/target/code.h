// SPDX-License-Identifier: Apache-2.0
//
// One ifunc's code, as a node holds it: checked, linked, ready to call. CodeStore makes, changes and frees it.
//
// Thread: the node's. Any other thread may read the atomic members; the tuner's thread publishes better code by one store
// to `entry`.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/content_id.h"
#include "target/code_use.h"
#include "target/jit_host.h"
#include "target/loader.h"
#include "target/policy.h"
#include "wire/abi_names.h"
#include "wire/bundle.h"

namespace tc::target {

using EntryPoint = void (*)(void* payload, size_t payload_size, void* target_args);

// Which compilation runs now; none: it is not linked.
enum class Tier : uint8_t { none = 0, object = 1, baseline = 2 /* JIT, low effort */, tuned = 3 /* O3 for this CPU */ };

// What a call of it needs to run in place, the least first: the hot path compares it with what the executor allows.
enum class Lane : uint8_t {
  shared,     // may run beside any other code
  exclusive,  // never at the same time as other exclusive code
  cold,  // is the cold path's: its payload needs more alignment than a frame has, another thread may have to run it, or it is not
         // linked
};

// Memory of one tier: an image of ours or code of the JIT's, never both.
struct CodeMemory {
  LoadedImage image;
  JitCode jitted;
  uintptr_t image_entry = 0;  // where that image is entered
  size_t bytes() const noexcept { return image.bytes() + jitted.bytes(); }
  bool holds(uintptr_t address) const noexcept { return image.holds(address) || jitted.holds(address); }
  // An image has no symbols any more: what lies behind its entry point is counted from there.
  CodePlace place_of(uintptr_t address) const noexcept {
    if (!image.holds(address)) return jitted.place_of(address);
    return address >= image_entry ? CodePlace{abi_names::main, address - image_entry}
                                  : CodePlace{{}, address - image.text()};
  }
};

// Stays where it is until the store evicts it, which happens only inside of CodeStore's functions.
class alignas(64) Code {
 public:
  // ---- The first cache line: all that a call reads or writes

  std::atomic<EntryPoint> entry{nullptr};
  uint64_t last_used = 0;  // set by the executor to its own tick; the smallest is evicted first
  bool pinned = false;     // never evicted: it may run at any time, or its memory is in use
  uint8_t alignment_log2 = 4;
  std::atomic<Tier> tier{Tier::none};
  // It is a library that was sent, or is linked to one: when a newer version of the library comes, it is freed or linked
  // anew while it is held. Set for good, before the entry point that needs it is stored.
  std::atomic<bool> replaceable{false};
  bool was_long = false;      // TimeSlice's, like calls_a_look
  uint16_t calls_a_look = 0;  // so many run between two readings of the clock; 0: long, or not known yet
  Lane lane = Lane::exclusive;
  bool concurrent = false;         // its author says that it may run at the same time as other code
  bool has_other_threads = false;  // the node can hand its calls to other threads
  std::unique_ptr<Bundle> bundle;  // kept whole: forwarding needs it
  uint64_t calls = 0;              // that ran in place and are not in `use` yet
  size_t bytes = 0;                // what it costs against the budget
  uint64_t queue_key = 0;          // its place in the EvictionQueue
  uint32_t long_us = 0;            // what long calls of it took, the longest for most
  uint32_t short_runs = 0;         // since the last long one
  uint32_t in_use = 0;             // so many calls of it run on other threads, or wait for one

  // ---- The rest is the store's

  uint64_t load_ns = 0;             // what loading took
  CodeUse* use = nullptr;           // of its name, at its node; null: nobody wants to know
  CodeMemory memory;                // of the tier that `entry` shows; behind it for a moment while a swap is adopted
  std::vector<CodeMemory> retired;  // of tiers before: freed when nothing of the ifunc runs
  // All tiers use the variables of the first, which is kept for them, with its code: they may point to that.
  Variables variables;
  CodeMemory first;                       // empty while `memory` is that tier, or when there are none
  std::vector<void*> libraries;           // shared libraries that it may use
  Assembly assembly = Assembly::refused;  // in its bitcode
  Exports exports;                        // of a library, while others are bound to it
  std::string sender;                     // who brought it, for messages; empty: this node itself
  Bytes compiled;                         // the object that a helper made of the bitcode; empty: none

  // Can it run in this process? Else it is held for others alone: cells, and peers to which it is sent on.
  bool is_linked() const noexcept { return tier.load(std::memory_order_relaxed) != Tier::none; }
  // Is it short, as far as is known?
  bool is_short() const noexcept { return calls_a_look != 0; }
  // After what it says changed.
  void settle_lane() noexcept {
    if (alignment_log2 > 4 || (has_other_threads && !is_short()) || !is_linked())
      lane = Lane::cold;
    else
      lane = concurrent ? Lane::shared : Lane::exclusive;
  }
  // The code is about to be freed, or its numbers are told.
  void fold_calls() noexcept {
    if (use != nullptr) use->calls += std::exchange(calls, 0);
  }
  const ContentId& id() const noexcept { return bundle->id(); }
  const std::string& name() const noexcept { return bundle->manifest().name; }
  bool is_library() const noexcept { return bundle->manifest().has(entry_library); }
  bool imports(std::string_view symbol) const noexcept {
    const auto& names = bundle->manifest().imports;
    return std::ranges::find(names, symbol) != names.end();
  }
  // Does the address lie in the text of a tier? This and place_of() are for a signal's handler.
  bool holds(uintptr_t address) const noexcept { return holder_of(address) != nullptr; }
  CodePlace place_of(uintptr_t address) const noexcept {
    const auto* const holder = holder_of(address);
    return holder != nullptr ? holder->place_of(address) : CodePlace();
  }
  // Shows all memory that its code may be running in.
  template <class Use>
  void each_memory(Use use) const {
    use(memory), use(first);
    for (const auto& old : retired) use(old);
  }
  // What this record and its bundle take, as read and as bytes.
  size_t bundle_bytes() const noexcept {
    const auto& m = bundle->manifest();
    size_t size = sizeof(Code) + sizeof(Bundle) + bundle->size_for(bundle->carried()) + compiled.size();
    size += sender.size() + m.slices.size() * (sizeof(Slice) + sizeof(Bytes));
    for (const auto& name : m.imports) size += sizeof(std::string) + name.size();
    for (const auto& name : m.dependencies) size += sizeof(std::string) + name.size() + sizeof(void*);
    return size;
  }
  size_t total_bytes() const noexcept { return bundle_bytes() + memory.bytes() + first.bytes() + retired_bytes(); }

 private:
  const CodeMemory* holder_of(uintptr_t address) const noexcept {
    for (const auto* const tier : {&memory, &first})
      if (tier->holds(address)) return tier;
    for (const auto& tier : retired)
      if (tier.holds(address)) return &tier;
    return nullptr;
  }
  size_t retired_bytes() const noexcept {
    size_t bytes = 0;
    for (const auto& old : retired) bytes += old.bytes();
    return bytes;
  }
};

}  // namespace tc::target
