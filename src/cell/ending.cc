// SPDX-License-Identifier: Apache-2.0
#include "cell/ending.h"

#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

namespace tc::cell {

namespace {

// Processors that came later have none of these.
#ifdef SYS_open
#define TC_OLD_CALLS(X) X(open) X(fork) X(vfork) X(access) X(unlink) X(mkdir) X(rename) X(pipe) X(select) X(stat)
#else
#define TC_OLD_CALLS(X)
#endif
// clang-format off
#define TC_CALLS(X) \
  X(accept) X(accept4) X(bind) X(bpf) X(capset) X(chdir) X(clone) X(connect) X(dup) X(epoll_create1) X(eventfd2) \
  X(execve) X(execveat) X(faccessat) X(fcntl) X(fstat) X(ftruncate) X(getcwd) X(getdents64) X(getppid) X(getsockopt) \
  X(getuid) X(ioctl) X(kill) X(listen) X(lseek) X(madvise) X(memfd_create) X(mkdirat) X(mmap) X(mount) X(mprotect) \
  X(newfstatat) X(openat) X(perf_event_open) X(pipe2) X(pkey_mprotect) X(prctl) X(pread64) X(prlimit64) \
  X(process_vm_readv) X(process_vm_writev) X(ptrace) X(readlinkat) X(recvfrom) X(rt_sigaction) X(seccomp) X(sendmsg) \
  X(setsockopt) X(setuid) X(shutdown) X(socket) X(socketpair) X(tgkill) X(tkill) X(uname) X(unlinkat) X(unshare) \
  X(wait4) X(writev)
// clang-format on

#define TC_CALL(name) std::pair<int, std::string_view>{SYS_##name, #name},
constexpr std::pair<int, std::string_view> named_calls[] = {TC_OLD_CALLS(TC_CALL) TC_CALLS(TC_CALL)};
#undef TC_CALL

std::string of_crash(const Crash& crash) {
  if (crash.system_call >= 0) return fmt::format(": its code called {}()", system_call_name(crash.system_call));
  const bool has_address = crash.signal == SIGSEGV || crash.signal == SIGBUS;
  const auto where = has_address ? fmt::format(" at address {:#x}", crash.address) : std::string();
  return fmt::format("{}, in code at {:#x}", where, crash.pc);
}

}  // namespace

std::string system_call_name(int number) {
  const auto* const found = std::ranges::find(named_calls, number, &std::pair<int, std::string_view>::first);
  return found != std::end(named_calls) ? std::string(found->second) : fmt::format("system call {}", number);
}

std::string Ending::text() const {
  switch (kind) {
    case Kind::left: return "has ended";
    case Kind::killed: return fmt::format("was killed: {}", why);
    case Kind::exited: return fmt::format("has ended itself with exit code {}", exit_code);
    case Kind::broke_protocol: return fmt::format("was killed, because it broke the protocol of cells: {}", why);
    case Kind::not_started: return fmt::format("did not start: {}", why);
    case Kind::crashed: break;
  }
  return fmt::format("was ended by signal {} ({}){}", signal, ::strsignal(signal), crash ? of_crash(*crash) : "");
}

}  // namespace tc::cell
