// SPDX-License-Identifier: Apache-2.0
#include "transport/origin.h"

#include <sys/socket.h>
#include <unistd.h>

#include "transport/address.h"
#include "transport/socket_owner.h"

namespace tc::transport {

Origin origin_of(const Fd& socket) {
  const auto peer = peer_address(socket);
  if (peer.family() == AF_UNIX) {
    ucred peer_process{};
    socklen_t size = sizeof peer_process;
    const bool known = getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer_process, &size) == 0;
    return {.host = "127.0.0.1",
            .text = fmt::format("process {} of user {}", peer_process.pid, peer_process.uid),
            .same_user = known && peer_process.uid == geteuid()};
  }
  const auto owner = owner_of(peer, local_address(socket));
  return {.host = peer.host(), .text = peer.text(), .same_user = owner && *owner == geteuid()};
}

}  // namespace tc::transport
