// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/connection.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "transport/ucx/fabric.h"

namespace tc::transport {

namespace {

// The socket's end can overtake messages on UCX's way: look for those first.
constexpr uint64_t last_words_ns = 3'000'000;
constexpr uint64_t closing_ns = 1'000'000'000;

}  // namespace

UcxConnection::UcxConnection(UcxFabric& fabric, Fd socket, std::string address, std::vector<SocketAddress> others)
    : ByteConnection(fabric.hub(), std::move(socket), std::move(address), std::move(others)), fabric_(fabric) {}

UcxConnection::UcxConnection(UcxFabric& fabric, Fd socket, const Origin& origin)
    : ByteConnection(fabric.hub(), std::move(socket), origin), fabric_(fabric) {}

std::string_view UcxConnection::transport() const noexcept { return fabric_.options().puts ? "ucx-put" : "ucx"; }

Result<std::unique_ptr<UcxConnection>> UcxConnection::connect(UcxFabric& fabric, Fd socket, std::string address,
                                                              std::vector<SocketAddress> others, ByteView hello) {
  std::unique_ptr<UcxConnection> made(
      new UcxConnection(fabric, std::move(socket), std::move(address), std::move(others)));
  TC_ASSIGN(made->channel_, UcxChannel::create(fabric, *made));
  TC_CHECK(made->start_greeting(hello));
  return made;
}

Result<std::unique_ptr<UcxConnection>> UcxConnection::accept(UcxFabric& fabric, Fd& socket, const Origin& origin,
                                                             const Greeting& greeting) {
  std::unique_ptr<UcxConnection> made(new UcxConnection(fabric, Fd(), origin));
  if (greeting.transport != made->transport())
    return fail(TC_ERR_UNSUPPORTED, "frames are to travel by '{}' when this node does '{}'", greeting.transport,
                made->transport());
  TC_CHECK(made->take_details(greeting.details));
  TC_ASSIGN(made->channel_, UcxChannel::create(fabric, *made));
  made->socket_ = std::move(socket);
  TC_CHECK(made->start_accepted());
  return made;
}

// Two versions of UCX understand each other over TCP, and over nothing else.
Status UcxConnection::take_details(ByteView bytes) {
  TC_ASSIGN(theirs_, decode_details(bytes));
  const bool is_same = theirs_.version == UcxWorker::version();
  if (!is_same && (fabric_.options().puts || !theirs_.tcp_alone || !fabric_.worker().tcp_alone()))
    return fail(
        TC_ERR_VERSION,
        "one side runs UCX {} when the other runs {}: between them only Active Messages over TCP work (ucx-tls, or "
        "UCX_TLS: tcp, on both sides)",
        theirs_.version, UcxWorker::version());
  return {};
}

Status UcxConnection::open_streams() {
  TC_CHECK(channel_->open(theirs_));
  open_streams_on(*channel_);
  watch(EPOLLIN | EPOLLRDHUP);
  fabric_.note(*channel_);  // bytes may have come before our answer was read
  return {};
}

// The last bytes need the channel until the peer has them. The peer ends its socket when it has read our BYE.
void UcxConnection::part(Bytes unsent) {
  if (!channel_->is_open()) return ByteConnection::part(std::move(unsent));
  hub_.poller.remove(socket_);
  fabric_.linger(std::move(socket_), std::move(channel_), std::move(unsent));
}

// Nothing is said on the socket after the greetings but the last word.
void UcxConnection::on_socket(uint32_t) {
  std::byte bytes[sizeof(uint64_t) + 1];
  const auto got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) last_word_.insert(last_word_.end(), bytes, bytes + got);
  if (last_word_.size() > sizeof(uint64_t))
    return lose(Error{TC_ERR_MALFORMED, "it sent more than its last word behind its greeting"});
  if (got > 0 && last_word_.size() < sizeof(uint64_t)) return;
  watch(0);
  wait_for_last_words(last_word_.empty() ? last_words_ns : closing_ns);
  fabric_.note(*channel_);
}

void UcxConnection::wait_for_last_words(uint64_t ns) noexcept {
  lost_at_ns_ = now_ns() + ns;
  fabric_.note_time();
}

// Has it sent its last word, and is everything here that it sent before?
bool UcxConnection::has_ended() const noexcept {
  uint64_t sent = 0;
  if (last_word_.size() != sizeof sent) return false;
  std::memcpy(&sent, last_word_.data(), sizeof sent);
  return channel_->taken() == sent;
}

void UcxConnection::deliver() noexcept {
  if (is_open() && waits_for_room_ && channel_->has_room()) {
    waits_for_room_ = false;
    on_channel_room();
  }
  while (is_open() && channel_->has_news() && take_in_safely()) {
  }
  if (is_open() && has_ended()) return lose(Error{TC_ERR_DISCONNECTED, "it closed the connection"});
  if (is_open() && channel_->has_news()) fabric_.note(*channel_);  // its owner is behind
}

uint64_t UcxConnection::check(uint64_t now) noexcept {
  if (!is_open()) return 0;
  if (lost_at_ns_ != 0 && now >= lost_at_ns_) return lose(Error{TC_ERR_DISCONNECTED, "it ended without a word"}), 0;
  if (channel_->has_news()) fabric_.note(*channel_);  // its endpoint has failed
  return lost_at_ns_;
}

}  // namespace tc::transport
