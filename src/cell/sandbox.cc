// SPDX-License-Identifier: Apache-2.0
#include "cell/sandbox.h"

#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>

#include "cell/seccomp_filter.h"

// Numbers that headers of older kernels do not have. They are the same on every processor.
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

namespace tc::cell {

Status end_with_parent(uint32_t parent) noexcept {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return fail(TC_ERR_IO, "asking for the end with the node: {}", system_words(errno));
  if (const auto found = static_cast<uint32_t>(::getppid()); found != parent)
    return fail(TC_ERR_DISCONNECTED, "the node is process {}, and this cell's parent is {}", parent, found);
  return {};
}

void close_descriptors_from(unsigned first) noexcept {
  if (::syscall(SYS_close_range, first, ~0U, 0) == 0) return;
  for (int fd = static_cast<int>(first), end = static_cast<int>(::sysconf(_SC_OPEN_MAX)); fd < end; ++fd) ::close(fd);
}

namespace {

// ---- Limits

uint64_t mapped_bytes() noexcept {
  uint64_t pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "re")) {
    if (std::fscanf(file, "%lu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool limit(__rlimit_resource what, uint64_t most, uint64_t hard) noexcept {
  rlimit before{};
  if (::getrlimit(what, &before) != 0) return false;
  const rlimit now{std::min(most, before.rlim_max), std::min(hard, before.rlim_max)};
  return ::setrlimit(what, &now) == 0;
}

// The limit of memory is a soft one: the node raises it for data that it maps here, and the filter keeps the code from doing so.
Status set_limits(const SandboxLimits& limits) {
  constexpr uint64_t stack_bytes = uint64_t{8} << 20;
  constexpr uint64_t descriptors = 16;  // one of them is used; poll() wants no more than the limit
  const uint64_t mapped = mapped_bytes();
  if (mapped == 0) return fail(TC_ERR_IO, "/proc does not tell how much memory is mapped, so it cannot be limited");
  if (!limit(RLIMIT_AS, mapped + limits.memory_bytes, RLIM_INFINITY) ||
      !limit(RLIMIT_STACK, stack_bytes, stack_bytes) || !limit(RLIMIT_FSIZE, 0, 0) ||
      !limit(RLIMIT_NOFILE, descriptors, descriptors) || !limit(RLIMIT_NPROC, 0, 0) || !limit(RLIMIT_CORE, 0, 0))
    return fail(TC_ERR_IO, "setting the limits of a cell: {}", system_words(errno));
  return {};
}

// ---- Privileges

// Does nothing where there are none. A cell of root would be able to poison memory, and to change its own limits.
void drop_capabilities() noexcept {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  const __user_cap_data_struct none[2] = {};
  (void)::syscall(SYS_capset, &header, none);
}

// ---- Landlock: a ruleset without a rule allows nothing of what it handles

// Returns what is lacking.
std::string enter_landlock() {
  constexpr unsigned ask_version = 1;
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, ask_version);
  if (version < 1) return "Landlock";
  const auto rules = landlock_rules(version);
  const auto ruleset = static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0));
  const bool is_restricted = ruleset >= 0 && ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  if (ruleset >= 0) ::close(ruleset);
  if (!is_restricted) return fmt::format("Landlock ({})", system_words(errno));
  if (version < 4) return "Landlock's rules for TCP, abstract sockets and signals";
  if (version < 6) return "Landlock's rules for abstract sockets and signals";
  return {};
}

Status enter_seccomp() {
  auto instructions = seccomp_filter(static_cast<uint32_t>(::getpid()));
  const sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  if (::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
    return fail(TC_ERR_UNSUPPORTED, "this kernel has no seccomp filter for a cell: {}", system_words(errno));
  return {};
}

}  // namespace

Result<std::string> enter_sandbox(const SandboxLimits& limits) {
  TC_CHECK(set_limits(limits));
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return fail(TC_ERR_UNSUPPORTED, "not dumpable: {}", system_words(errno));
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    return fail(TC_ERR_UNSUPPORTED, "this kernel has no no_new_privs: {}", system_words(errno));
  drop_capabilities();
  auto lacks = enter_landlock();
  TC_CHECK(enter_seccomp());
  return lacks;
}

}  // namespace tc::cell
