// SPDX-License-Identifier: Apache-2.0
//
// Signals by which a thread's own doing ends the process: SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP and SIGSYS. Who
// listens is told, and then the signal takes the course that it would have taken: to the handler that the program had, or to
// the end of the process.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string_view>

namespace tc {

// What a signal says of the thread that it came to.
struct Fault {
  int signal = 0;
  const void* address = nullptr;  // that was used
  bool has_address = false;       // SIGSEGV and SIGBUS, where the system knows it
  uintptr_t pc = 0;               // the instruction
  uintptr_t stack = 0;            // the stack pointer
  bool is_last = false;           // the program has no handler of its own: the process ends
};

// "SIGSEGV"; "a signal" for those that have no name here.
std::string_view signal_name(int number) noexcept;

// Puts handlers in front of the program's, while at least one object lives. Programs that set handlers of their own later
// have theirs in front, and those find ours as the ones that were there before.
class FatalSignals {
 public:
  // On the thread that the signal came to, inside of its handler, so `tell` may only do what a handler may. All objects of a
  // process give the same function. It may fault itself: then it is called again.
  using Tell = void (*)(const Fault& fault) noexcept;
  explicit FatalSignals(Tell tell);
  ~FatalSignals();
  FatalSignals(const FatalSignals&) = delete;
  FatalSignals& operator=(const FatalSignals&) = delete;
};

// Lets this thread's handlers run on a stack of their own, so that also the end of a stack that was used up is told. Does
// nothing on a thread that has one, and where there is no memory for it. Goes with the thread.
void have_alternate_stack() noexcept;

}  // namespace tc
