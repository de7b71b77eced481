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

#define TC_CALL(name) std::pair<int, std::string_view>{SYS_##name, #name},
constexpr std::pair<int, std::string_view> named_calls[] = {
#ifdef SYS_open  // processors that came later have none of these
    TC_CALL(open) TC_CALL(fork) TC_CALL(vfork) TC_CALL(access) TC_CALL(unlink) TC_CALL(mkdir) TC_CALL(rename)
        TC_CALL(pipe) TC_CALL(select) TC_CALL(stat)
#endif
#ifdef SYS_newfstatat
            TC_CALL(newfstatat)
#endif
    TC_CALL(accept) TC_CALL(accept4) TC_CALL(bind) TC_CALL(bpf) TC_CALL(capset) TC_CALL(chdir) TC_CALL(clone)
        TC_CALL(connect) TC_CALL(dup) TC_CALL(epoll_create1) TC_CALL(eventfd2) TC_CALL(execve) TC_CALL(execveat)
            TC_CALL(faccessat) TC_CALL(fcntl) TC_CALL(fstat) TC_CALL(ftruncate) TC_CALL(getcwd) TC_CALL(getdents64)
                TC_CALL(getppid) TC_CALL(getsockopt) TC_CALL(getuid) TC_CALL(ioctl) TC_CALL(kill) TC_CALL(listen)
                    TC_CALL(lseek) TC_CALL(madvise) TC_CALL(memfd_create) TC_CALL(mkdirat) TC_CALL(mmap)
                        TC_CALL(mount) TC_CALL(mprotect) TC_CALL(openat) TC_CALL(perf_event_open) TC_CALL(pipe2)
                            TC_CALL(pkey_mprotect) TC_CALL(prctl) TC_CALL(pread64) TC_CALL(prlimit64)
                                TC_CALL(process_vm_readv) TC_CALL(process_vm_writev) TC_CALL(ptrace) TC_CALL(readlinkat)
                                    TC_CALL(recvfrom) TC_CALL(rt_sigaction) TC_CALL(seccomp) TC_CALL(sendmsg)
                                        TC_CALL(setsockopt) TC_CALL(setuid) TC_CALL(shutdown) TC_CALL(socket)
                                            TC_CALL(socketpair) TC_CALL(tgkill) TC_CALL(tkill) TC_CALL(uname)
                                                TC_CALL(unlinkat) TC_CALL(unshare) TC_CALL(wait4) TC_CALL(writev)};
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
