// SPDX-License-Identifier: Apache-2.0
//
// What a cell leaves behind when a signal ends it: a page of shared memory of its own. The cell's signal handler writes it, and
// the node reads it after the cell's death.
//
// Code in the cell can write anything into it. So read() copies first, checks then, and the record only says more about a death
// that the kernel reports, too.
//
// Threads: any; install() and the handler belong to the cell's only thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace tc::cell {

struct CrashRecord {
  static constexpr size_t most_frames = 32;

  uint32_t is_complete;  // the last to be written but for the frames
  int32_t signal;
  int32_t code;         // si_code
  int32_t system_call;  // of SIGSYS
  uint64_t address;     // that was accessed, or of the instruction
  uint64_t pc;
  uint32_t frame_count;          // counted up with each frame, so that a fault on the way costs only the rest
  uint64_t frames[most_frames];  // return addresses, the innermost first
  uint32_t begun_call;           // the number of the last call whose code was entered
};

// A crash as the node knows it.
struct Crash {
  int signal = 0;
  int code = 0;
  int system_call = -1;  // that was refused; -1: none
  uint64_t address = 0;
  uint64_t pc = 0;
  std::vector<uint64_t> frames;
};

// The memory of a record.
class CrashMemory {
 public:
  CrashMemory() = default;
  // An empty record. TC_ERR_IO, TC_ERR_NO_MEMORY.
  static Result<CrashMemory> create();
  // The record that a node created.
  static Result<CrashMemory> adopt(Fd descriptor);
  CrashMemory(CrashMemory&& other) noexcept { *this = std::move(other); }
  CrashMemory& operator=(CrashMemory&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(record_, other.record_);
    return *this;
  }
  ~CrashMemory();

  const Fd& descriptor() const noexcept { return descriptor_; }
  void close_descriptor() noexcept { descriptor_.reset(); }
  CrashRecord* record() const noexcept { return record_; }
  // Nothing: the cell's handler has written nothing that makes sense.
  std::optional<Crash> read() const;
  uint32_t begun_call() const noexcept {
    return record_ == nullptr ? 0 : std::atomic_ref(record_->begun_call).load(std::memory_order_relaxed);
  }

 private:
  static Result<CrashMemory> map(Fd descriptor);

  Fd descriptor_;
  CrashRecord* record_ = nullptr;
};

// In the cell: from now on, a signal that ends it is recorded first. The handler has a stack of its own, so that it can also
// tell of a recursion without end. `stack_top` is the end of this thread's stack; then where the code lies that runs here. The
// record must stay for good.
Status install_crash_handler(CrashRecord* record, uint64_t stack_top, uint64_t code_begin,
                             uint64_t code_bytes) noexcept;

}  // namespace tc::cell
