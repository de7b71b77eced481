// SPDX-License-Identifier: Apache-2.0
#include "cell/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

#ifndef SYS_clone3
#define SYS_clone3 435
#endif
#ifndef SYS_rseq
#define SYS_rseq 334
#endif

namespace tc::cell {

namespace {

#if defined(__x86_64__)
constexpr uint32_t own_architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t own_architecture = AUDIT_ARCH_AARCH64;
#elif defined(__riscv)
constexpr uint32_t own_architecture = AUDIT_ARCH_RISCV64;
#else
#error "the number of this architecture is needed"
#endif

// Whatever the arguments are. There is one descriptor, the socket of the node, and Landlock and the limits allow no other.
constexpr long allowed[] = {
    // time, and what a waiting loop does
    SYS_sched_yield, SYS_clock_gettime, SYS_gettimeofday, SYS_clock_nanosleep, SYS_futex, SYS_membarrier,
    SYS_restart_syscall,
#ifdef SYS_time  // other processors have clock_gettime alone
    SYS_time,
#endif
    // the socket of the node
    SYS_recvmsg, SYS_sendto, SYS_read, SYS_write, SYS_ppoll, SYS_close,
#ifdef SYS_poll  // other processors have ppoll alone
    SYS_poll,
#endif
    // memory
    SYS_munmap, SYS_brk, SYS_mremap,
    // the handler of signals, and the end
    SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_sigaltstack, SYS_exit, SYS_exit_group,
    // what the C library does by itself
    SYS_getpid, SYS_gettid, SYS_getrandom, SYS_set_robust_list, SYS_rseq, SYS_sched_getaffinity};

// Builds the program. Each check either decides or leaves the number of the system call loaded for the next one.
class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, own_architecture, 1, 0);
    decide(SECCOMP_RET_TRAP);
    load(offsetof(seccomp_data, nr));
  }

  void allow(long number) {
    jump(BPF_JEQ, static_cast<uint32_t>(number), 0, 1);
    decide(SECCOMP_RET_ALLOW);
  }
  // As if this kernel did not have it, so that the C library goes on with an older one.
  void refuse_quietly(long number, unsigned error) {
    jump(BPF_JEQ, static_cast<uint32_t>(number), 0, 1);
    decide(SECCOMP_RET_ERRNO | error);
  }
  // Allows it when `test` holds for the lower half of an argument and `value`, or does not, if `wanted` is false.
  void allow_if(long number, unsigned argument, uint16_t test, uint32_t value, bool wanted = true) {
    jump(BPF_JEQ, static_cast<uint32_t>(number), 0, 4);
    load(static_cast<uint32_t>(offsetof(seccomp_data, args) + argument * sizeof(uint64_t)));
    jump(test, value, wanted ? 0 : 1, wanted ? 1 : 0);
    decide(SECCOMP_RET_ALLOW);
    decide(SECCOMP_RET_TRAP);
  }
  std::vector<sock_filter> finish() && {
    decide(SECCOMP_RET_TRAP);
    return std::move(program_);
  }

 private:
  void load(uint32_t offset) { program_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
  void jump(uint16_t test, uint32_t value, uint8_t if_true, uint8_t if_false) {
    const auto code = static_cast<uint16_t>(BPF_JMP | test | BPF_K);
    program_.push_back(BPF_JUMP(code, value, if_true, if_false));
  }
  void decide(uint32_t action) { program_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }

  std::vector<sock_filter> program_;
};

}  // namespace

std::vector<sock_filter> seccomp_filter(uint32_t own_pid) {
  constexpr uint32_t harmless_advice = 26;  // those from 100 on take memory from the whole system
  Filter filter;
  for (const long number : allowed) filter.allow(number);
  filter.allow_if(SYS_mmap, 2, BPF_JSET, PROT_EXEC, false);
  filter.allow_if(SYS_mprotect, 2, BPF_JSET, PROT_EXEC, false);
  filter.allow_if(SYS_madvise, 2, BPF_JGE, harmless_advice, false);
  filter.allow_if(SYS_tgkill, 0, BPF_JEQ, own_pid);
  filter.allow_if(SYS_prctl, 0, BPF_JEQ, PR_SET_NAME);
  filter.refuse_quietly(SYS_clone3, ENOSYS);
  return std::move(filter).finish();
}

}  // namespace tc::cell
