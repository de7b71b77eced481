// SPDX-License-Identifier: Apache-2.0
#include "cell/packets.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace tc::cell {

namespace {

// Room for the descriptors of one packet.
union Control {
  cmsghdr header;
  char bytes[CMSG_SPACE(start_descriptors * sizeof(int))];
};

void take_descriptors(msghdr& message, ReceivedPacket& packet) noexcept {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count && i < packet.descriptors.size(); ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof descriptor, sizeof descriptor);
      packet.descriptors[i] = Fd(descriptor);
    }
  }
}

}  // namespace

Result<std::array<Fd, 2>> socket_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(TC_ERR_IO, "sockets for a cell: {}", system_words(errno));
  return std::array{Fd(ends[0]), Fd(ends[1])};
}

Status send_packet(int socket, ByteView bytes, std::span<const int> descriptors) {
  if (bytes.size() > max_packet_bytes || descriptors.size() > start_descriptors)
    return fail(TC_ERR_TOO_LARGE, "a packet for a cell has {} bytes and {} descriptors when {} and {} are the most",
                bytes.size(), descriptors.size(), max_packet_bytes, start_descriptors);
  iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  Control control{};
  msghdr message{.msg_iov = &part, .msg_iovlen = 1};
  if (!descriptors.empty()) {
    message.msg_control = control.bytes;
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  if (::sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return {};
  if (errno == EAGAIN) return fail(TC_ERR_BUSY, "the cell has not read the packets before");
  return fail(TC_ERR_IO, "a packet for a cell: {}", system_words(errno));
}

Result<std::optional<ReceivedPacket>> receive_packet(int socket, bool waits) {
  ReceivedPacket packet;
  packet.bytes.resize(max_packet_bytes);
  iovec part{packet.bytes.data(), packet.bytes.size()};
  Control control{};
  msghdr message{.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
  ssize_t got = 0;
  do got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (waits ? 0 : MSG_DONTWAIT));
  while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return std::nullopt;
  if (got < 0 && errno != ECONNRESET) return fail(TC_ERR_IO, "the socket of the node: {}", system_words(errno));
  packet.bytes.resize(got > 0 ? static_cast<size_t>(got) : 0);
  take_descriptors(message, packet);
  return packet;
}

}  // namespace tc::cell
