// SPDX-License-Identifier: Apache-2.0
#include "transport/origin.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "transport/address.h"

namespace tc::transport {

namespace {

void set_end(const SocketAddress& address, __be16& port, __be32 (&bytes)[4]) noexcept {
  if (address.family() == AF_INET) {
    const auto& in = *reinterpret_cast<const sockaddr_in*>(address.get());
    port = in.sin_port;
    std::memcpy(bytes, &in.sin_addr, sizeof in.sin_addr);
  } else {
    const auto& in6 = *reinterpret_cast<const sockaddr_in6*>(address.get());
    port = in6.sin6_port;
    std::memcpy(bytes, &in6.sin6_addr, sizeof in6.sin6_addr);
  }
}

struct Question {
  nlmsghdr head{};
  inet_diag_req_v2 body{};
};
struct Answer {
  nlmsghdr head{};
  inet_diag_msg body{};
};

Question question_about(const SocketAddress& from, const SocketAddress& to) noexcept {
  Question question;
  question.head.nlmsg_len = sizeof question;
  question.head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.head.nlmsg_flags = NLM_F_REQUEST;
  question.body.sdiag_family = static_cast<__u8>(from.family());
  question.body.sdiag_protocol = IPPROTO_TCP;
  question.body.idiag_states = ~__u32{0};
  set_end(from, question.body.id.idiag_sport, question.body.id.idiag_src);
  set_end(to, question.body.id.idiag_dport, question.body.id.idiag_dst);
  question.body.id.idiag_cookie[0] = question.body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  return question;
}

// Who owns the TCP socket that goes from `from` to `to`, when it is one of this network namespace. A socket that nobody
// holds any more has no owner: the kernel would call it root's.
std::optional<uid_t> owner_of(const SocketAddress& from, const SocketAddress& to) noexcept {
  const Fd netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  const Question question = question_about(from, to);
  if (!netlink || ::send(netlink.get(), &question, sizeof question, 0) != sizeof question) return {};
  alignas(nlmsghdr) std::byte buffer[4096];
  const auto got = ::recv(netlink.get(), buffer, sizeof buffer, MSG_DONTWAIT);  // the kernel has answered by now
  Answer answer;
  if (got < static_cast<ssize_t>(sizeof answer)) return {};
  std::memcpy(&answer, buffer, sizeof answer);
  const auto& id = answer.body.id;
  const bool is_that_one = answer.head.nlmsg_type == SOCK_DIAG_BY_FAMILY &&
                           id.idiag_sport == question.body.id.idiag_sport &&
                           id.idiag_dport == question.body.id.idiag_dport &&
                           std::memcmp(id.idiag_src, question.body.id.idiag_src, sizeof id.idiag_src) == 0;
  if (!is_that_one || answer.body.idiag_state != TCP_ESTABLISHED || answer.body.idiag_inode == 0) return {};
  return answer.body.idiag_uid;
}

}  // namespace

Origin origin_of(const Fd& socket) {
  const auto peer = peer_address(socket);
  if (peer.family() == AF_UNIX) {
    ucred who{};
    socklen_t size = sizeof who;
    const bool known = getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
    return {.host = "127.0.0.1",
            .text = fmt::format("process {} of user {}", who.pid, who.uid),
            .same_user = known && who.uid == geteuid()};
  }
  const auto owner = owner_of(peer, local_address(socket));
  return {.host = peer.host(), .text = peer.text(), .same_user = owner && *owner == geteuid()};
}

}  // namespace tc::transport
