// SPDX-License-Identifier: Apache-2.0
#include "transport/origin.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "transport/address.h"

namespace tc::transport {

Origin origin_of(const Fd& socket, std::span<const AddressRange> trusted_networks) {
  const auto peer = peer_address(socket);
  Origin origin;
  if (peer.family() == AF_UNIX) {
    ucred process{};
    socklen_t size = sizeof process;
    const bool known = getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &process, &size) == 0;
    origin.host = "127.0.0.1";
    origin.text = fmt::format("process {} of user {}", process.pid, process.uid);
    origin.same_user = known && is_own_user(process);
    origin.is_local = true;
    return origin;
  }
  origin.host = peer.host();
  origin.text = peer.text();
  origin.on_trusted_network =
      std::ranges::any_of(trusted_networks, [&](const auto& range) { return range.contains(origin.host); });
  return origin;
}

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
