// SPDX-License-Identifier: Apache-2.0
//
// What a node says when a fatal signal ends its process inside an ifunc: one line on standard error, and the same sentence in
// a file.
//
//     node 3 (node3) ended while it ran ifunc 'sum' (SIGSEGV): it used address 0x0 in sum_main+0x1c; content id
//     1f2e3d4c5b6a, called by client 4711
//
// When LLVM ends the process while it compiles or links code, the line says whose code that was:
//
//     node 3 (node3) ended while it compiled ifunc 'sum' (SIGSEGV): it used address 0x0; content id 1f2e3d4c5b6a, sent by
//     user 1000 of this host
//
// Whether the ifunc is to blame is seen from the stack: the signal came in its code, or in a function that this called. Of
// signals that the program handles itself, as some runtimes do to stop their threads, only those are told that came in the
// code of an ifunc.
//
// Threads: any.
#pragma once

#include <string>

#include "base/fatal_signals.h"
#include "base/log_format.h"
#include "target/being_built.h"
#include "target/executor.h"

namespace tc::target {

class LastWords {
 public:
  // `log`: the name of the node's log; empty: nothing goes to standard error. `node`: "node 3 (node3)". `file`: empty: none.
  LastWords(std::string log, LogFormat format, std::string node, std::string file);
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;

 private:
  class Sentence;
  static void tell(const Fault& fault) noexcept;
  void say(const Fault& fault, const Code& code, const IfuncHost::InProgress& call) const noexcept;
  void say(const Fault& fault, const BeingBuilt& built) const noexcept;
  void write_line(std::string_view sentence, const LogFields& fields) const noexcept;
  void write_file(std::string_view sentence) const noexcept;

  const std::string log_, node_, file_;
  const LogFormat format_;
  const long seconds_east_;  // of Greenwich
  const FatalSignals signals_{tell};
};

}  // namespace tc::target
