// SPDX-License-Identifier: Apache-2.0
//
// What CodeStore keeps of one ifunc besides its public face, Code. Only the store and its helpers include this.
//
// Thread: the node's; code_store.h names what other threads may read.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "target/code_store.h"
#include "target/jit_host.h"
#include "target/loader.h"

namespace tc::target {

// Memory of one tier: an image of ours or code of the JIT's, never both.
struct CodeMemory {
  LoadedImage image;
  JitCode jitted;
  size_t bytes() const noexcept { return image.bytes() + jitted.bytes(); }
};

class StoredCode final : public Code {
 public:
  CodeMemory memory;                // of the tier that `entry` shows; behind it for a moment while a swap is adopted
  std::vector<CodeMemory> retired;  // of tiers before: freed when nothing of the ifunc runs
  // All tiers use the variables of the first, which is kept for them, with its code: they may point to that.
  Variables variables;
  CodeMemory first;              // empty while `memory` is that tier, or when there are none
  std::vector<void*> libraries;  // shared libraries that it may use
  Exports exports;               // of a library, while others are bound to it
  Bytes compiled;                // the object that a helper made of the bitcode; empty: none
  uint64_t queue_key = 0;        // its place in the EvictionQueue

  bool is_library() const noexcept { return bundle->manifest().has(entry_library); }
  bool imports(std::string_view symbol) const noexcept {
    const auto& names = bundle->manifest().imports;
    return std::ranges::find(names, symbol) != names.end();
  }
  // Memory of the bundle, read and as bytes.
  size_t bundle_bytes() const noexcept;
  size_t total_bytes() const noexcept { return bundle_bytes() + memory.bytes() + first.bytes() + retired_bytes(); }

 private:
  size_t retired_bytes() const noexcept {
    size_t bytes = 0;
    for (const auto& old : retired) bytes += old.bytes();
    return bytes;
  }
};

}  // namespace tc::target
