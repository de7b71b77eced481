// SPDX-License-Identifier: Apache-2.0
#include "transport/socket_owner.h"

#include <fmt/format.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "base/fd.h"

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

// Nothing as well when the kernel has no such interface, as under an emulator or without the module.
std::optional<uid_t> ask_kernel(const SocketAddress& from, const SocketAddress& to) noexcept {
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

// "0100007F:1B59", as /proc/net/tcp spells an address.
std::string in_table(const SocketAddress& address) {
  __be16 port = 0;
  __be32 bytes[4] = {};
  set_end(address, port, bytes);
  std::string text;
  const size_t words = address.family() == AF_INET ? 1 : 4;
  for (size_t i = 0; i < words; ++i) text += fmt::format("{:08X}", bytes[i]);
  return fmt::format("{}:{:04X}", text, ntohs(port));
}

// The slow way: the system's table of sockets, a line each:
// "  0: 0100007F:1B59 0100007F:A2C4 01 00000000:00000000 00:00000000 00000000  1000        0 71234 ..."
std::optional<uid_t> search_table(const SocketAddress& from, const SocketAddress& to) {
  const char* const path = from.family() == AF_INET ? "/proc/net/tcp" : "/proc/net/tcp6";
  const std::unique_ptr<FILE, int (*)(FILE*)> table(std::fopen(path, "re"), &std::fclose);
  const auto ends = fmt::format(": {} {} 01 ", in_table(from), in_table(to));  // 01: established
  char line[512];
  while (table && std::fgets(line, sizeof line, table.get()) != nullptr) {
    const char* const found = std::strstr(line, ends.c_str());
    unsigned owner = 0;
    unsigned long inode = 0;
    if (found != nullptr && std::sscanf(found + ends.size(), "%*s %*s %*s %u %*u %lu", &owner, &inode) == 2 &&
        inode != 0)
      return owner;
  }
  return {};
}

}  // namespace

std::optional<uid_t> owner_of(const SocketAddress& from, const SocketAddress& to) {
  if (const auto owner = ask_kernel(from, to)) return owner;
  // Reading the table is slow when it is long: only for peers on this host.
  return from.is_here() ? search_table(from, to) : std::nullopt;
}

}  // namespace tc::transport
