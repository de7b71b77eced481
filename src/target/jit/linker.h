// SPDX-License-Identifier: Apache-2.0
//
// A relocatable object to code in this process, by JITLink. Without ORC: its session, libraries and tasks cost some
// 30 µs a link and give us nothing, since each ifunc is one object that nobody else binds to.
//
// Threads: any; calls may overlap, and so may the destruction of linked code.
#pragma once

#include <memory>

#include "target/jit/slab.h"
#include "target/jit_plugin.h"

namespace tc::target::jit {

struct LinkerOptions {
  bool debugger = false;  // tell gdb (and lldb) about linked code
  bool perf = false;      // write /tmp/perf-PID.map for `perf report`
};

class Linker {
 public:
  explicit Linker(LinkerOptions options) : options_(options), slabs_(Slabs::create()) {}

  // As Jit::link.
  Result<std::unique_ptr<LinkedCode>> link(ByteView object, const std::string& label, const SymbolResolver& resolve);

  const Slabs& slabs() const noexcept { return *slabs_; }

 private:
  const LinkerOptions options_;
  const std::shared_ptr<Slabs> slabs_;
};

}  // namespace tc::target::jit
