// SPDX-License-Identifier: Apache-2.0
//
// Code in a store, as a node holds it, without the node. Threads: one; the store has its own in the background.
#pragma once

#include <memory>

#include "target/code_store.h"

namespace tc::bench {

class LoadedCode {
 public:
  // Loads the slice of that form, and waits until bitcode is compiled for this CPU. `label` is for error messages.
  static Result<LoadedCode> load(const char* label, ByteView bundle, SliceForm form);
  target::EntryPoint entry() const noexcept { return entry_; }

 private:
  std::unique_ptr<target::Policy> policy_ = std::make_unique<target::Policy>();
  std::unique_ptr<target::CodeStore> store_;
  target::EntryPoint entry_ = nullptr;
};

}  // namespace tc::bench
