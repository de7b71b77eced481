// SPDX-License-Identifier: Apache-2.0
#include "transport/greeter.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace tc::transport {

namespace {

// The result of a call of the system that found nothing to do now.
bool must_wait(ssize_t result) noexcept { return result < 0 && (errno == EAGAIN || errno == EINTR); }

// One piece of bytes, and room for one descriptor beside it.
struct Message {
  Message(void* bytes, size_t size) noexcept : piece{bytes, size} {
    head.msg_iov = &piece;
    head.msg_iovlen = 1;
    head.msg_control = control;
    head.msg_controllen = CMSG_LEN(sizeof(int));  // not CMSG_SPACE, in whose padding a second descriptor would fit
  }
  iovec piece;
  msghdr head{};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
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
  return has_heard() ? Status{} : hear(socket);
}

Status Greeter::send(const Fd& socket) {
  Message message(out_.data() + said_, out_.size() - said_);
  if (attached_ >= 0 && said_ == 0) {
    cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(head), &attached_, sizeof attached_);
  } else {
    message.head.msg_control = nullptr;
    message.head.msg_controllen = 0;
  }
  const auto sent = ::sendmsg(socket.get(), &message.head, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (must_wait(sent) || (sent < 0 && errno == ENOTCONN)) return {};
  if (sent < 0) return fail(TC_ERR_DISCONNECTED, "greeting it: {}", system_words(errno));
  said_ += static_cast<size_t>(sent);
  return {};
}

Status Greeter::hear(const Fd& socket) {
  while (in_.size() < wanted_) {
    const size_t had = in_.size();
    in_.resize(wanted_);
    const auto got = receive(socket, std::span(in_).subspan(had));
    in_.resize(had + got.value_or(0));
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return {};
    if (in_.size() == wanted_ && wanted_ == greeting_head_bytes) {
      TC_ASSIGN(const size_t more, decode_greeting_head(in_));
      wanted_ += more;
    }
  }
  TC_ASSIGN(heard_, decode_greeting(in_));
  in_ = {};
  return {};
}

// How many bytes came; 0: none now.
Result<size_t> Greeter::receive(const Fd& socket, std::span<std::byte> into) {
  Message message(into.data(), into.size());
  const auto got = ::recvmsg(socket.get(), &message.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (must_wait(got)) return 0;
  if (got < 0) return fail(TC_ERR_DISCONNECTED, "{}", system_words(errno));
  const cmsghdr* const head = CMSG_FIRSTHDR(&message.head);
  if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
      head->cmsg_len == CMSG_LEN(sizeof(int))) {
    int descriptor = -1;
    std::memcpy(&descriptor, CMSG_DATA(head), sizeof descriptor);
    descriptor_ = Fd(descriptor);
  }
  if (got == 0) return fail(TC_ERR_DISCONNECTED, "it ended the connection before it greeted");
  if ((message.head.msg_flags & MSG_CTRUNC) != 0)
    return fail(TC_ERR_TOO_LARGE, "more than one descriptor came with its greeting");
  return static_cast<size_t>(got);
}

Status say_at_once(const Fd& socket, ByteView message) {
  const auto sent = ::send(socket.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(message.size())) return {};
  return fail(TC_ERR_DISCONNECTED, "answering it: {}", sent < 0 ? system_words(errno) : "it takes no more bytes");
}

}  // namespace tc::transport
