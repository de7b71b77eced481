// SPDX-License-Identifier: Apache-2.0
#include "transport/closing_sockets.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "transport/address.h"

namespace tc::transport {

namespace {

constexpr size_t max_closing = 256, max_refused = 32;

}  // namespace

// Null when there are fewer than `least` of that kind.
ClosingSockets::Closing* ClosingSockets::oldest(bool is_refused, size_t least) noexcept {
  const auto counts = [&](const Closing& closing) { return !closing.ended && closing.is_refused == is_refused; };
  if (static_cast<size_t>(std::ranges::count_if(all_, counts)) < least) return nullptr;
  return &*std::ranges::find_if(all_, counts);
}

bool ClosingSockets::close_oldest_refused() noexcept {
  auto* const closing = oldest(true, 1);
  if (closing != nullptr) closing->end(0);
  return closing != nullptr;
}

// The first bytes, and the end of our side, leave at once: the node may not poll for a while after it closes a connection.
void ClosingSockets::take(Fd socket, Bytes unsent, std::string peer, bool is_refused) {
  if (auto* const first = oldest(is_refused, is_refused ? max_refused : max_closing)) first->end(first->left());
  auto& closing = all_.emplace_back();
  closing.socket = std::move(socket);
  closing.unsent = std::move(unsent);
  closing.peer = std::move(peer);
  closing.is_refused = is_refused;
  closing.owner = this;
  closing.time = ClosingTime(now_ns(), closing.left());
  if (!poller_.add(closing.socket, closing, EPOLLIN | EPOLLRDHUP | EPOLLOUT)) {
    closing.end(closing.left());
    return all_.pop_back();
  }
  closing.send();
}

uint64_t ClosingSockets::sweep(uint64_t now) noexcept {
  uint64_t next = 0;
  std::erase_if(all_, [&](Closing& closing) {
    const bool is_over = closing.ended || closing.time.is_over(now, [&] { return closing.left(); });
    if (is_over) closing.end(closing.left());
    if (!is_over && (next == 0 || closing.time.end_ns() < next)) next = closing.time.end_ns();
    return is_over;
  });
  return next;
}

bool ClosingSockets::has_unfinished() const noexcept {
  return std::ranges::any_of(
      all_, [](const Closing& one) { return !one.ended && (one.is_refused ? one.unsent_bytes() : one.left()) != 0; });
}

// What the peer's kernel has taken is not lost, even if the peer has not read it yet.
void ClosingSockets::end(Closing& closing, size_t lost_bytes) noexcept {
  if (closing.ended) return;
  closing.ended = true;
  poller_.remove(closing.socket);
  closing.socket.reset();
  if (lost_bytes == 0 || closing.is_refused) return;
  try {
    events_.on_warning(lost_bytes_warning(lost_bytes, closing.peer));
  } catch (const std::exception&) {  // no memory for the sentence
  }
}

void ClosingSockets::Closing::on_ready(uint32_t events) noexcept {
  if ((events & EPOLLOUT) != 0) send();
  if (!ended) read();
}

void ClosingSockets::Closing::send() noexcept {
  while (sent < unsent.size()) {
    const auto took = ::send(socket.get(), unsent.data() + sent, unsent.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (would_block(took)) return;
    if (took < 0) return end(unsent_bytes());
    sent += static_cast<size_t>(took);
  }
  (void)::shutdown(socket.get(), SHUT_WR);
  owner->poller_.change(socket, *this, EPOLLIN | EPOLLRDHUP);
}

// Bytes that still come are discarded. They must be read all the same: closing the socket with unread bytes would send
// a reset.
void ClosingSockets::Closing::read() noexcept {
  std::byte discarded[16 * 1024];
  const auto got = ::recv(socket.get(), discarded, sizeof discarded, MSG_DONTWAIT);
  if (got <= 0 && !would_block(got)) end(unsent_bytes());
}

// Bytes that the peer has not taken, as far as is known: a Unix socket delivers at once.
size_t ClosingSockets::Closing::left() const noexcept {
  int queued = 0;
  if (local_address(socket).family() != AF_UNIX && ::ioctl(socket.get(), SIOCOUTQ, &queued) != 0) queued = 0;
  return unsent_bytes() + static_cast<size_t>(queued);
}

}  // namespace tc::transport
