// SPDX-License-Identifier: Apache-2.0
//
// Makes linked code known to gdb and lldb: breakpoints, source lines, backtraces. They stop the process at a known
// function and read a list of object files from its memory; each has its sections' addresses filled in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/bytes.h"

namespace tc::target::jit {

// One entry of the list; taken out when destroyed. Threads: any (the list has a lock).
class DebuggerEntry {
 public:
  virtual ~DebuggerEntry() = default;

  // `object` is the relocatable object that was linked (copied); `addresses` says where its sections went. Null
  // when the object cannot be described: debugging is a help, not a condition.
  static std::unique_ptr<DebuggerEntry> add(ByteView object,
                                            const std::unordered_map<std::string, uint64_t>& addresses);
};

}  // namespace tc::target::jit
