// SPDX-License-Identifier: Apache-2.0
#include "transport/socket/tcp_connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tc::transport {

namespace {

// In one system call; more are sent by the next one.
constexpr size_t most_places = most_gathered_frames * (most_gathered_parts + 2);
// A peer that goes while it is paused: for so long its owner may go on to read it. An owner that paused it because answers
// to it waited does that at once.
constexpr uint64_t resumption_ns = 100'000'000;

}  // namespace

Result<std::unique_ptr<TcpConnection>> TcpConnection::connect(Hub& hub, Fd socket, std::string address,
                                                              std::vector<SocketAddress> others, ByteView hello) {
  std::unique_ptr<TcpConnection> made(new TcpConnection(hub, std::move(socket), std::move(address), std::move(others)));
  TC_CHECK(made->start_greeting(hello));
  return made;
}

Result<std::unique_ptr<TcpConnection>> TcpConnection::accept(Hub& hub, SocketStream& stream, const Origin& origin) {
  std::unique_ptr<TcpConnection> made(new TcpConnection(hub, std::move(stream), origin));
  TC_CHECK(made->start_accepted());
  return made;
}

Status TcpConnection::open_streams() {
  if (stream_.is_encrypted())
    open_streams_on(tls_, SocketStream::least_room);
  else
    open_streams_on(*this);
  watch(reading());
  return {};
}

uint32_t TcpConnection::reading() const noexcept { return is_paused() ? 0u : EPOLLIN | EPOLLRDHUP; }

void TcpConnection::set_paused(bool paused) noexcept {
  ByteConnection::set_paused(paused);
  if (!is_open()) return;
  watch(reading() | (awaits_room_ ? EPOLLOUT : 0u));
  if (!paused && std::exchange(is_unwatched_, false)) {
    set_deadline(0);
    resume_watching();
  }
}

void TcpConnection::on_socket(uint32_t events) {
  // epoll tells of these whether they are watched or not.
  if (is_paused() && (events & (EPOLLERR | EPOLLHUP)) != 0) return await_resumption();
  if ((events & EPOLLOUT) != 0) {
    awaits_room_ = false;
    watch(reading());
    if (auto pushed = stream_.push(); !pushed)
      end_sending(std::move(pushed).error());
    else if (stream_.has_unsent())
      return on_channel_full();
    else
      on_channel_room();
  }
  // An end that came with the last bytes is in the session, and the socket tells of it no more.
  while (is_open() && receive_frames() && stream_.has_more()) {
  }
}

void TcpConnection::on_channel_full() noexcept {
  awaits_room_ = true;
  watch(reading() | EPOLLOUT);
}

void TcpConnection::await_resumption() noexcept {
  if (read_until_ns_ == 0) read_until_ns_ = now_ns() + resumption_ns;
  is_unwatched_ = true;
  stop_watching();
  set_deadline(read_until_ns_);
  end_sending(Error{TC_ERR_DISCONNECTED, "it closed its socket without disconnecting first"});
}

void TcpConnection::on_deadline() noexcept {
  lose_at_end(Error{TC_ERR_DISCONNECTED, "it closed its socket without disconnecting first"});
}

// Mostly the peer has closed its socket, and the kernel knows the end. After another failure it might not come.
void TcpConnection::end_receiving() noexcept { (void)::shutdown(stream_.socket().get(), SHUT_RDWR); }

Result<size_t> TcpConnection::send_gathered(std::span<const ByteView> parts) {
  std::array<iovec, most_places> places;
  const size_t count = std::min(parts.size(), places.size());
  for (size_t i = 0; i < count; ++i) places[i] = {const_cast<std::byte*>(parts[i].data()), parts[i].size()};
  msghdr message{};
  message.msg_iov = places.data();
  message.msg_iovlen = count;
  const auto sent = ::sendmsg(stream_.socket().get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return lost_socket(errno);
}

}  // namespace tc::transport
