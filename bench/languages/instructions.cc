// SPDX-License-Identifier: Apache-2.0
#include "languages/instructions.h"

#include <csignal>

namespace tc::bench {

#if defined(__x86_64__)

namespace {

// A signal handler reaches nothing else.
thread_local volatile uint64_t stops;

void on_stop(int) { stops = stops + 1; }

// Both step over the red zone below the stack pointer, in which the compiler may keep values.
inline void trap_each_instruction() {
  asm volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
}
inline void trap_no_more() {
  asm volatile("leaq -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tleaq 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
}

}  // namespace

std::optional<uint64_t> count_instructions(const std::function<void()>& call) {
  struct sigaction action{}, before{};
  action.sa_handler = on_stop;
  if (sigaction(SIGTRAP, &action, &before) != 0) return {};
  const auto count = [](const std::function<void()>& function) {
    stops = 0;
    trap_each_instruction();
    function();
    trap_no_more();
    return uint64_t{stops};
  };
  const auto nothing = count([] {});
  const auto all = count(call);
  sigaction(SIGTRAP, &before, nullptr);
  return all - nothing;
}

#else

std::optional<uint64_t> count_instructions(const std::function<void()>&) { return {}; }

#endif

}  // namespace tc::bench
