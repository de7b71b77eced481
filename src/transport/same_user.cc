// SPDX-License-Identifier: Apache-2.0
#include "transport/same_user.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/fd.h"

namespace tc::transport {

namespace {

constexpr uid_t usual_overflow_uid = 65534;

uid_t read_overflow_uid() noexcept {
  const Fd file(::open("/proc/sys/kernel/overflowuid", O_RDONLY | O_CLOEXEC));
  char text[32];
  const auto size = file ? ::read(file.get(), text, sizeof text) : -1;
  uid_t uid = usual_overflow_uid;
  if (size > 0) std::from_chars(text, text + size, uid);
  return uid;
}

using Namespace = std::pair<dev_t, ino_t>;

// Nothing: the kernel does not show it.
std::optional<Namespace> namespace_of(const char* process) noexcept {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%s/ns/user", process);
  struct stat info{};
  if (::stat(path, &info) != 0) return std::nullopt;
  return Namespace(info.st_dev, info.st_ino);
}

}  // namespace

bool is_own_user(const ucred& peer) noexcept {
  static const uid_t overflow_uid = read_overflow_uid();
  if (peer.uid != ::geteuid() || peer.uid == overflow_uid || peer.pid <= 0) return false;
  const auto ours = namespace_of("self");
  if (!ours) return true;  // there is no /proc, or a kernel without user namespaces: the number is all there is
  char pid[16];
  std::snprintf(pid, sizeof pid, "%d", peer.pid);
  return namespace_of(pid) == ours;
}

}  // namespace tc::transport
