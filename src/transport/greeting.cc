// SPDX-License-Identifier: Apache-2.0
#include "transport/greeting.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/address.h"
#include "wire/text.h"

namespace tc::transport {

namespace {

constexpr uint32_t magic = 0x314e4354;  // "TCN1"
enum class GreetingKind : uint8_t { greeting = 1, refusal = 2 };

Bytes encode(GreetingKind kind, ByteView body) {
  Bytes out;
  Writer(out)
      .u32(magic)
      .u8(greeting_version)
      .u8(static_cast<uint8_t>(kind))
      .u16(0)
      .u32(static_cast<uint32_t>(body.size()));
  Writer(out).bytes(body);
  return out;
}

// The beginning of what a program that is no node has sent, for messages: "HTTP/1.1 400 Bad".
std::string shown(ByteView head) {
  std::string text(as_text(head));
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '.');
  return text;
}

}  // namespace

Bytes encode_greeting(const Greeting& greeting) {
  Bytes body;
  Writer w(body);
  w.str8(greeting.transport).u16(static_cast<uint16_t>(greeting.details.size())).bytes(greeting.details);
  w.bytes(greeting.hello);
  return encode(GreetingKind::greeting, body);
}

Bytes encode_refusal(const Error& why) {
  Bytes body;
  Writer(body).u32(static_cast<uint32_t>(why.code)).str16(std::string_view(why.message).substr(0, 4096));
  return encode(GreetingKind::refusal, body);
}

Result<size_t> decode_greeting_head(ByteView head) {
  Reader r(head);
  const uint32_t found = r.u32();
  const uint8_t version = r.u8();
  const auto kind = static_cast<GreetingKind>(r.u8());
  const uint16_t zero = r.u16();
  const uint32_t size = r.u32();
  if (found != magic) return fail(TC_ERR_MALFORMED, "it is no Three-Chains node: it says '{}'", shown(head));
  if (version != greeting_version && kind != GreetingKind::refusal)
    return fail(TC_ERR_VERSION, "its greeting has version {} when ours has {}", version, greeting_version);
  if (zero != 0 || (kind != GreetingKind::greeting && kind != GreetingKind::refusal)) r.refuse();
  TC_CHECK(r.finish_exactly("the head of a greeting"));
  if (size > max_greeting_bytes)
    return fail(TC_ERR_TOO_LARGE, "its greeting is {} bytes when at most {} are taken", size, max_greeting_bytes);
  return size;
}

Result<Greeting> decode_greeting(ByteView message) {
  const auto head = message.first(std::min(message.size(), greeting_head_bytes));
  TC_ASSIGN(const size_t size, decode_greeting_head(head));
  if (message.size() != greeting_head_bytes + size)
    return fail(TC_ERR_MALFORMED, "its greeting is {} bytes when its head says {}",
                message.size() - greeting_head_bytes, size);
  Reader r(message.subspan(greeting_head_bytes));
  if (static_cast<GreetingKind>(head[5]) == GreetingKind::refusal) {
    const auto status = status_from_wire(r.u32());
    const std::string reason = wire::words(r.str16());
    if (status == TC_OK) r.refuse();
    TC_CHECK(r.finish_exactly("a refusal"));
    return fail(Error{status, reason});
  }
  Greeting greeting;
  greeting.transport = r.str8();
  const ByteView details = r.bytes(r.u16());
  greeting.details.assign(details.begin(), details.end());
  const ByteView hello = r.rest();
  greeting.hello.assign(hello.begin(), hello.end());
  if (!wire::visible(greeting.transport)) r.refuse();
  TC_CHECK(r.finish("a greeting"));
  return greeting;
}

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
