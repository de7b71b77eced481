// SPDX-License-Identifier: Apache-2.0
//
// Compiles bitcode for this CPU at full optimisation, in a thread of its own, and swaps the result in: one atomic
// store to Code::entry. The thread is started by the first job. Where none can be had, code stays as it is, and the thread is
// tried again later.
//
// Threads: add(), start(), cancel(), finished() and the destructor from the node's thread. A code that was added
// must be cancelled before it is freed; after cancel() the tuner's thread does not touch it again.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "target/bitcode_builder.h"

namespace tc::target {

class Code;
class Policy;

class Tuner {
 public:
  Tuner(BitcodeBuilder& builder, const Policy& policy, TargetTriple host)
      : builder_(builder), policy_(policy), host_(std::move(host)) {}
  ~Tuner();
  Tuner(const Tuner&) = delete;
  Tuner& operator=(const Tuner&) = delete;

  // Remembers a code to be tuned. Costs no system call: it is on the way of a first execution.
  void add(Code& code) { waiting_.push_back(&code); }
  // Hands what was added to the thread. May throw std::bad_alloc, and be called again.
  void start();
  // Forgets the code, and drops the result if it is being compiled just now. What was published before is among
  // finished() still.
  void cancel(Code& code) noexcept;

  // A code whose entry shows its new memory already; the caller takes it over and frees the old one when it can.
  struct Finished {
    Code* code = nullptr;
    JitCode memory;
  };
  std::vector<Finished> finished();
  // False when the deadline passed before all that was added is done.
  bool wait(uint64_t deadline_ms);

 private:
  bool has_thread();
  void run();
  void tune_or_leave(std::unique_lock<std::mutex>& lock, Code& code) noexcept;
  void tune(std::unique_lock<std::mutex>& lock, Code& code);

  BitcodeBuilder& builder_;
  const Policy& policy_;
  const TargetTriple host_;
  std::deque<Code*> waiting_;  // the node thread's own, as the next two
  uint64_t next_try_ns_ = 0;   // to start the thread
  bool has_told_ = false;      // that there is none

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Code*> queue_;
  Code* current_ = nullptr;  // null also when the code in work was cancelled
  bool busy_ = false;
  bool stop_ = false;
  std::vector<Finished> finished_;

  std::atomic<bool> has_finished_{false};
  bool warned_ = false;  // the tuner thread's own
  std::thread thread_;
};

}  // namespace tc::target
