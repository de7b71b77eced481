// SPDX-License-Identifier: Apache-2.0
//
// A relocatable object to code, by JITLink. Without ORC: its session, libraries and tasks cost some
// 30 µs a link and give us nothing, since each ifunc is one object that nothing else binds to.
//
// Threads: any; calls may overlap, and so may the destruction of linked code.
#pragma once

#include <memory>

#include "target/jit/link_memory.h"
#include "target/jit_plugin.h"

namespace tc::target::jit {

struct LinkerOptions {
  bool debugger = false;  // tell gdb (and lldb) about linked code
  bool perf = false;      // write /tmp/perf-PID.map for `perf report`
};

class Linker {
 public:
  // `memory` is shared with the code that is linked, which may outlive the linker.
  Linker(LinkerOptions options, std::shared_ptr<CodeArena> memory) : options_(options), memory_(std::move(memory)) {}

  // As Jit::link.
  Result<std::unique_ptr<LinkedCode>> link(ByteView object, const std::string& label, const SymbolResolver& resolve,
                                           const Variables& variables, memory::Arena* exported);

 private:
  const LinkerOptions options_;
  const std::shared_ptr<CodeArena> memory_;
};

}  // namespace tc::target::jit
