// SPDX-License-Identifier: Apache-2.0
#include "transport/greeter.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "transport/address.h"

namespace tc::transport {

namespace {

// The arguments of sendmsg() and recvmsg(): one piece of bytes, and room for one descriptor.
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

void Greeter::queue(Bytes message, int attached) {
  out_ = std::move(message);
  sent_ = 0;
  attached_ = attached;
}

uint32_t Greeter::wanted_events() const noexcept { return EPOLLIN | (has_sent() ? 0u : EPOLLOUT); }

Status Greeter::progress(SocketStream& stream) {
  if (!has_sent()) TC_CHECK(send_some(stream));
  if (stream.has_unsent()) TC_CHECK(stream.push());
  return has_received() ? Status{} : receive_message(stream);
}

Status Greeter::send_some(SocketStream& stream) {
  if (!stream.is_encrypted()) return send_with_descriptor(stream.socket());
  auto sent = stream.send(ByteView(out_).subspan(sent_));
  if (!sent) return context("sending it our greeting", std::move(sent).error());
  sent_ += *sent;
  return {};
}

Status Greeter::send_with_descriptor(const Fd& socket) {
  Message message(out_.data() + sent_, out_.size() - sent_);
  if (attached_ >= 0 && sent_ == 0) {
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
  if (would_block(sent) || (sent < 0 && errno == ENOTCONN)) return {};
  if (sent < 0) return fail(TC_ERR_DISCONNECTED, "sending it our greeting: {}", system_words(errno));
  sent_ += static_cast<size_t>(sent);
  return {};
}

Status Greeter::receive_message(SocketStream& stream) {
  while (in_.size() < expected_bytes_) {
    const size_t had = in_.size();
    in_.resize(expected_bytes_);
    const auto into = std::span(in_).subspan(had);
    const auto got = stream.is_encrypted() ? stream.receive(into) : receive_with_descriptor(stream.socket(), into);
    in_.resize(had + got.value_or(0));
    if (!got) return std::unexpected(got.error());
    if (*got == 0) return {};
    if (in_.size() == expected_bytes_ && expected_bytes_ == greeting_head_bytes) {
      TC_ASSIGN(const size_t more, decode_greeting_head(in_));
      expected_bytes_ += more;
    }
  }
  TC_ASSIGN(received_, decode_greeting(in_));
  in_ = {};
  return {};
}

// Returns how many bytes came; 0: none now.
Result<size_t> Greeter::receive_with_descriptor(const Fd& socket, std::span<std::byte> into) {
  Message message(into.data(), into.size());
  const auto got = ::recvmsg(socket.get(), &message.head, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (would_block(got)) return 0;
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

}  // namespace tc::transport
