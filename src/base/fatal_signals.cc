// SPDX-License-Identifier: Apache-2.0
#include "base/fatal_signals.h"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

namespace tc {

namespace {

constexpr std::array signals{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
constexpr size_t alternate_stack_bytes = size_t{64} * 1024;

// Handlers belong to the process, by the system's definition; so does what stands behind ours.
struct Handlers {
  std::mutex mutex;
  int users = 0;
  std::array<bool, signals.size()> installed{};
  std::array<struct sigaction, signals.size()> before{};
};

Handlers& handlers() noexcept {
  static Handlers all;
  return all;
}

std::atomic<FatalSignals::Tell> listener{nullptr};

size_t index_of(int number) noexcept {
  size_t index = 0;
  while (index + 1 < signals.size() && signals[index] != number) ++index;
  return index;
}

bool has_function(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

Fault fault_of(int number, const siginfo_t& info, const void* context) noexcept {
  Fault fault{.signal = number};
  fault.address = info.si_addr;
  fault.has_address = (number == SIGSEGV || number == SIGBUS) && info.si_code > 0 && info.si_code != SI_KERNEL;
  const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  fault.pc = static_cast<uintptr_t>(machine.gregs[REG_RIP]);
  fault.stack = static_cast<uintptr_t>(machine.gregs[REG_RSP]);
#elif defined(__aarch64__)
  fault.pc = machine.pc;
  fault.stack = machine.sp;
#elif defined(__riscv)
  fault.pc = machine.__gregs[REG_PC];
  fault.stack = machine.__gregs[REG_SP];
#endif
  return fault;
}

// A fault that the thread's next instruction would repeat ends the process when the handler returns; one that was sent to the
// thread must be sent again.
void take_default(int number, const siginfo_t& info) noexcept {
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  ::sigaction(number, &action, nullptr);
  if (info.si_code <= 0) ::raise(number);
}

void on_signal(int number, siginfo_t* info, void* context) {
  const int error = errno;
  const auto& before = handlers().before[index_of(number)];
  auto fault = fault_of(number, *info, context);
  fault.is_last = !has_function(before);
  if (const auto tell = listener.load()) tell(fault);
  errno = error;
  if (!has_function(before)) return take_default(number, *info);
  if ((before.sa_flags & SA_SIGINFO) != 0)
    before.sa_sigaction(number, info, context);
  else
    before.sa_handler(number);
}

bool is_ours(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_signal;
}

// A fault inside the handler comes to the handler again (SA_NODEFER).
void install(size_t index) noexcept {
  auto& all = handlers();
  if (all.installed[index] || ::sigaction(signals[index], nullptr, &all.before[index]) != 0) return;
  struct sigaction action{};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  all.installed[index] = ::sigaction(signals[index], &action, nullptr) == 0;
}

// Where the program has put a handler in front of ours, which may call it, ours stays.
void uninstall(size_t index) noexcept {
  auto& all = handlers();
  struct sigaction now{};
  if (!all.installed[index] || ::sigaction(signals[index], nullptr, &now) != 0 || !is_ours(now)) return;
  ::sigaction(signals[index], &all.before[index], nullptr);
  all.installed[index] = false;
}

class AlternateStack {
 public:
  AlternateStack() noexcept {
    stack_t now{};
    if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    void* const memory =
        ::mmap(nullptr, alternate_stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    const stack_t ours{.ss_sp = memory, .ss_flags = 0, .ss_size = alternate_stack_bytes};
    if (::sigaltstack(&ours, nullptr) == 0)
      memory_ = memory;
    else
      ::munmap(memory, alternate_stack_bytes);
  }
  ~AlternateStack() {
    if (memory_ == nullptr) return;
    stack_t now{};
    if (::sigaltstack(nullptr, &now) != 0) return;
    if (now.ss_sp == memory_) {
      const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
      if (::sigaltstack(&none, nullptr) != 0) return;
    }
    ::munmap(memory_, alternate_stack_bytes);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* memory_ = nullptr;
};

}  // namespace

std::string_view signal_name(int number) noexcept {
  switch (number) {
    case SIGSEGV: return "SIGSEGV";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGILL: return "SIGILL";
    case SIGABRT: return "SIGABRT";
    case SIGTRAP: return "SIGTRAP";
    case SIGSYS: return "SIGSYS";
    case SIGKILL: return "SIGKILL";
    case SIGXCPU: return "SIGXCPU";
    default: return "a signal";
  }
}

FatalSignals::FatalSignals(Tell tell) {
  listener.store(tell);
  auto& all = handlers();
  const std::scoped_lock lock(all.mutex);
  if (all.users++ != 0) return;
  for (size_t index = 0; index < signals.size(); ++index) install(index);
}

FatalSignals::~FatalSignals() {
  auto& all = handlers();
  const std::scoped_lock lock(all.mutex);
  if (--all.users != 0) return;
  for (size_t index = 0; index < signals.size(); ++index) uninstall(index);
}

void have_alternate_stack() noexcept { static thread_local const AlternateStack stack; }

}  // namespace tc
