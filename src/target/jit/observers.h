// SPDX-License-Identifier: Apache-2.0
//
// Makes linked code known to debuggers and perf, which look into this process from outside.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/bytes.h"

namespace tc::target::jit {

// Makes linked code known to gdb and lldb: breakpoints, source lines, backtraces. They stop the process at a known
// function and read a list of object files from its memory; each has its sections' addresses filled in. This is one entry
// of that list, taken out when destroyed.
class DebuggerEntry {
 public:
  virtual ~DebuggerEntry() = default;

  // `object` is the relocatable object that was linked (copied); `addresses` says where its sections went. Null
  // when the object cannot be described: debugging is a help, not a condition.
  static std::unique_ptr<DebuggerEntry> add(ByteView object,
                                            const std::unordered_map<std::string, uint64_t>& addresses);
};

// Names a linked function for `perf report`: appends a line to /tmp/perf-PID.map, the place where perf looks. Does nothing
// when the file cannot be written.
void add_to_perf_map(uint64_t address, uint64_t size, std::string_view label, std::string_view function);

}  // namespace tc::target::jit
