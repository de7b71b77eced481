// SPDX-License-Identifier: Apache-2.0
//
// The half of the crash record that runs in the cell. Everything here is safe in a signal handler.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "cell/crash_record.h"

namespace tc::cell {

namespace {

constexpr size_t alternate_stack_bytes = 64 * 1024;  // AVX-512 alone needs 13.5 KiB of it
constexpr int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};

// A handler reaches nothing else.
CrashRecord* crash_record = nullptr;
uint64_t crash_stack_top = 0;
uint64_t crash_code_begin = 0, crash_code_bytes = 0;

struct Registers {
  uint64_t pc, sp, frame;
  uint64_t link;  // the return address where the processor keeps it in a register; 0 elsewhere
};

Registers registers_of(const ucontext_t& context) noexcept {
  const auto& machine = context.uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<uint64_t>(machine.gregs[REG_RIP]), static_cast<uint64_t>(machine.gregs[REG_RSP]),
          static_cast<uint64_t>(machine.gregs[REG_RBP]), 0};
#elif defined(__aarch64__)
  return {machine.pc, machine.sp, machine.regs[29], machine.regs[30]};
#elif defined(__riscv)
  return {machine.__gregs[REG_PC], machine.__gregs[REG_SP], machine.__gregs[REG_S0], machine.__gregs[REG_RA]};
#else
#error "the registers of this architecture are needed"
#endif
}

uint64_t word_at(uint64_t address) noexcept {
  uint64_t word;
  std::memcpy(&word, reinterpret_cast<const void*>(address), sizeof word);
  return word;
}

// Code without frame pointers ends the walk: then the register holds no address of the stack above.
void record_frames(CrashRecord& record, const Registers& registers) noexcept {
  const auto add = [&record](uint64_t address) {
    record.frames[record.frame_count] = address;
    std::atomic_ref(record.frame_count).store(record.frame_count + 1, std::memory_order_release);
  };
  const auto is_in_stack = [](uint64_t address, uint64_t above) {
    return address % sizeof(uint64_t) == 0 && address >= above && address < crash_stack_top - 2 * sizeof(uint64_t);
  };
  if (registers.link != 0) add(registers.link);
  // A jump to nowhere: the instruction behind the call is on top of the stack.
  if (registers.link == 0 && registers.pc == record.address && is_in_stack(registers.sp, registers.sp))
    add(word_at(registers.sp));
#if defined(__riscv)
  constexpr int64_t saved_frame = -16, return_address = -8;
#else
  constexpr int64_t saved_frame = 0, return_address = 8;
#endif
  uint64_t above = registers.sp;
  for (uint64_t frame = registers.frame; is_in_stack(frame, above) && record.frame_count < CrashRecord::most_frames;) {
    add(word_at(frame + static_cast<uint64_t>(return_address)));
    above = frame + sizeof(uint64_t);
    frame = word_at(frame + static_cast<uint64_t>(saved_frame));
  }
}

// Libraries have no frame pointers: what they were called from is the first word on the stack that leads into the code.
void record_caller(CrashRecord& record, const Registers& registers) noexcept {
  const auto is_in_code = [](uint64_t address) { return address - crash_code_begin < crash_code_bytes; };
  if (is_in_code(registers.pc) || record.frame_count == CrashRecord::most_frames) return;
  for (uint64_t at = registers.sp & ~uint64_t{7}; at + sizeof(uint64_t) < crash_stack_top; at += sizeof(uint64_t)) {
    if (!is_in_code(word_at(at))) continue;
    record.frames[record.frame_count] = word_at(at);
    std::atomic_ref(record.frame_count).store(record.frame_count + 1, std::memory_order_release);
    return;
  }
}

// The signal has its default action again by now, and is not blocked: what faults in here ends the cell at once.
void on_fatal_signal(int signal, siginfo_t* info, void* context) noexcept {
  const auto registers = registers_of(*static_cast<const ucontext_t*>(context));
  auto& record = *crash_record;
  record.signal = signal;
  record.code = info->si_code;
  record.system_call = signal == SIGSYS ? info->si_syscall : -1;
  record.address = signal == SIGABRT ? 0 : reinterpret_cast<uintptr_t>(info->si_addr);
  record.pc = registers.pc;
  record.frame_count = 0;
  std::atomic_ref(record.is_complete).store(1, std::memory_order_release);
  record_frames(record, registers);
  record_caller(record, registers);
  (void)::syscall(SYS_tgkill, ::getpid(), static_cast<pid_t>(::syscall(SYS_gettid)), signal);
  ::_exit(128 + signal);
}

}  // namespace

Status install_crash_handler(CrashRecord* record, uint64_t stack_top, uint64_t code_begin,
                             uint64_t code_bytes) noexcept {
  crash_record = record;
  crash_stack_top = stack_top;
  crash_code_begin = code_begin;
  crash_code_bytes = code_bytes;
  void* const stack =
      ::mmap(nullptr, alternate_stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  const stack_t alternate{.ss_sp = stack, .ss_flags = 0, .ss_size = alternate_stack_bytes};
  if (stack == MAP_FAILED || ::sigaltstack(&alternate, nullptr) != 0)
    return fail(TC_ERR_NO_MEMORY, "a stack for signals: {}", system_words(errno));
  struct sigaction action{};
  action.sa_sigaction = on_fatal_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (const int signal : fatal_signals)
    if (::sigaction(signal, &action, nullptr) != 0)
      return fail(TC_ERR_IO, "a handler for signal {}: {}", signal, system_words(errno));
  return {};
}

}  // namespace tc::cell
