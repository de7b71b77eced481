// SPDX-License-Identifier: Apache-2.0
#include "transport/origin.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

#include "transport/address.h"
#include "transport/same_user.h"

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

}  // namespace tc::transport
