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

namespace {

// Two cheap signs come first: where there is no descriptor for a probe, is_here() says no.
bool is_this_host(const SocketAddress& peer, const SocketAddress& ours) {
  const auto host = peer.host();
  return host.starts_with("127.") || host.starts_with("::ffff:127.") || host == ours.host() || peer.is_here();
}

}  // namespace

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
    if (known) origin.why_not_same_user = why_not_own_user(process);
    origin.is_local = true;
    return origin;
  }
  origin.host = peer.host();
  origin.text = peer.text();
  origin.is_this_host = is_this_host(peer, local_address(socket));
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

std::string_view why_not_own_user(const ucred& peer) noexcept {
  static const uid_t overflow_uid = read_overflow_uid();
  if (peer.uid != ::geteuid()) return {};
  if (peer.uid == overflow_uid)
    return "that number stands for all users that this user namespace does not know, so it proves nothing; run both "
           "as a user with a number of its own";
  constexpr std::string_view other_namespace =
      "that process is in another user namespace, or cannot be seen from here, so the number may be anybody's; run "
      "both in one namespace";
  if (peer.pid <= 0) return other_namespace;
  const auto ours = namespace_of("self");
  if (!ours) return {};  // there is no /proc, or a kernel without user namespaces: the number is all there is
  char pid[16];
  std::snprintf(pid, sizeof pid, "%d", peer.pid);
  return namespace_of(pid) == ours ? std::string_view() : other_namespace;
}

bool is_own_user(const ucred& peer) noexcept { return peer.uid == ::geteuid() && why_not_own_user(peer).empty(); }

}  // namespace tc::transport
