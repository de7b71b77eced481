// SPDX-License-Identifier: Apache-2.0
//
// System calls that fail, as they do on an older kernel, in a strict container, or where memory is short.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace tc::test {

// Calls with this number whose `argument` has, of `bits`, those of `value` alone; all of them where `bits` is 0. Only the
// lower half of an argument counts.
struct RefusedCall {
  long number;
  int error;  // what the caller gets instead
  unsigned argument = 0;
  uint32_t bits = 0, value = 0;
};

// For the calling thread, until it ends: give it a std::thread of its own. False: this kernel, or emulator, has no such
// filters.
inline bool refuse(const RefusedCall& call) {
  const auto argument = static_cast<uint32_t>(offsetof(seccomp_data, args) + call.argument * sizeof(uint64_t));
  sock_filter steps[] = {
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 4, static_cast<uint32_t>(call.number)},
      {BPF_LD | BPF_W | BPF_ABS, 0, 0, argument},
      {BPF_ALU | BPF_AND | BPF_K, 0, 0, call.bits},
      {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, call.value},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | static_cast<uint32_t>(call.error)},
      {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{std::size(steps), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The calling thread can start no others, as at a limit on tasks. The rest as refuse().
inline bool refuse_threads() {
  return refuse({.number = SYS_clone3, .error = EAGAIN}) &&
         refuse({.number = SYS_clone, .error = EAGAIN, .bits = CLONE_THREAD, .value = CLONE_THREAD});
}

}  // namespace tc::test
