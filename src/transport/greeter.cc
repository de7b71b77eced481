// SPDX-License-Identifier: Apache-2.0
#include "transport/greeter.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace tc::transport {

namespace {

std::unexpected<Error> ended() { return fail(TC_ERR_DISCONNECTED, "it ended the connection before it greeted"); }

// The result of a call of the system that found nothing to do now.
bool must_wait(ssize_t result) noexcept { return result < 0 && (errno == EAGAIN || errno == EINTR); }

// A control message with room for one descriptor.
union OneDescriptor {
  char bytes[CMSG_SPACE(sizeof(int))];
  cmsghdr align;
};

}  // namespace

void Greeter::say(Bytes message, int attached) {
  out_ = std::move(message);
  said_ = 0;
  attached_ = attached;
}

uint32_t Greeter::wanted_events() const noexcept { return EPOLLIN | (has_said() ? 0u : EPOLLOUT); }

Status Greeter::go_on(const Fd& socket) {
  if (!has_said()) TC_CHECK(send(socket));
  if (has_heard()) return {};
  return kind_ == Socket::stream ? hear_stream(socket) : hear_packet(socket);
}

Status Greeter::send(const Fd& socket) {
  iovec piece{out_.data() + said_, out_.size() - said_};
  OneDescriptor control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  if (attached_ >= 0) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    cmsghdr* const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &attached_, sizeof attached_);
  }
  const auto sent = ::sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (must_wait(sent) || (sent < 0 && errno == ENOTCONN)) return {};
  if (sent < 0) return fail(TC_ERR_DISCONNECTED, "greeting it: {}", system_words(errno));
  said_ += static_cast<size_t>(sent);
  return {};
}

Status Greeter::hear_stream(const Fd& socket) {
  while (in_.size() < wanted_) {
    const size_t had = in_.size();
    in_.resize(wanted_);
    const auto got = ::recv(socket.get(), in_.data() + had, wanted_ - had, MSG_DONTWAIT);
    in_.resize(had + (got > 0 ? static_cast<size_t>(got) : 0));
    if (must_wait(got)) return {};
    if (got < 0) return fail(TC_ERR_DISCONNECTED, "{}", system_words(errno));
    if (got == 0) return ended();
    if (in_.size() == wanted_ && wanted_ == greeting_head_bytes) {
      TC_ASSIGN(const size_t more, decode_greeting_head(in_));
      wanted_ += more;
    }
  }
  return understand();
}

Status Greeter::hear_packet(const Fd& socket) {
  in_.resize(greeting_head_bytes + max_greeting_bytes);
  iovec piece{in_.data(), in_.size()};
  OneDescriptor control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = CMSG_LEN(sizeof(int));  // not CMSG_SPACE, in whose padding a second descriptor would fit
  const auto got = ::recvmsg(socket.get(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (must_wait(got)) return {};
  if (got < 0) return fail(TC_ERR_DISCONNECTED, "{}", system_words(errno));
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof(int))) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    descriptor_ = Fd(descriptor);
  }
  if (got == 0) return ended();
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return fail(TC_ERR_TOO_LARGE, "its greeting is longer than {} bytes or carries more than one descriptor",
                max_greeting_bytes);
  in_.resize(static_cast<size_t>(got));
  return understand();
}

Status say_at_once(const Fd& socket, ByteView message) {
  const auto sent = ::send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(message.size())) return {};
  return fail(TC_ERR_DISCONNECTED, "answering it: {}", sent < 0 ? system_words(errno) : "it takes no more bytes");
}

Status Greeter::understand() {
  TC_ASSIGN(heard_, decode_greeting(in_));
  in_ = {};
  return {};
}

}  // namespace tc::transport
