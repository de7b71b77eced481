// SPDX-License-Identifier: Apache-2.0
#include "transport/network/closing_sockets.h"

#include <sys/socket.h>

#include <algorithm>

#include "transport/address.h"

namespace tc::transport {

namespace {

constexpr uint64_t closing_ns = 1'000'000'000;
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
  if (closing != nullptr) closing->end();
  return closing != nullptr;
}

void ClosingSockets::take(Fd socket, Bytes unsent, bool is_refused) {
  if (auto* const first = oldest(is_refused, is_refused ? max_refused : max_closing)) first->end();
  auto& closing = all_.emplace_back();
  closing.socket = std::move(socket);
  closing.unsent = std::move(unsent);
  closing.is_refused = is_refused;
  closing.poller = &poller_;
  closing.deadline_ns = now_ns() + closing_ns;
  if (!poller_.add(closing.socket, closing, EPOLLIN | EPOLLRDHUP | EPOLLOUT)) all_.pop_back();
}

uint64_t ClosingSockets::sweep(uint64_t now) noexcept {
  std::erase_if(all_, [&](const Closing& closing) {
    const bool is_over = closing.ended || now >= closing.deadline_ns;
    if (is_over) poller_.remove(closing.socket);
    return is_over;
  });
  return all_.empty() ? 0 : all_.front().deadline_ns;
}

bool ClosingSockets::has_unsent() const noexcept {
  return std::ranges::any_of(all_, [](const Closing& one) { return !one.ended && one.sent < one.unsent.size(); });
}

void ClosingSockets::Closing::on_ready(uint32_t events) noexcept {
  if ((events & EPOLLOUT) != 0) send();
  if (!ended) read();
}

void ClosingSockets::Closing::send() noexcept {
  while (sent < unsent.size()) {
    const auto took = ::send(socket.get(), unsent.data() + sent, unsent.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (would_block(took)) return;
    if (took < 0) return end();
    sent += static_cast<size_t>(took);
  }
  (void)::shutdown(socket.get(), SHUT_WR);
  poller->change(socket, *this, EPOLLIN | EPOLLRDHUP);
}

// Bytes that still come are discarded. They must be read all the same: closing the socket with unread bytes would send
// a reset.
void ClosingSockets::Closing::read() noexcept {
  std::byte discarded[16 * 1024];
  const auto got = ::recv(socket.get(), discarded, sizeof discarded, MSG_DONTWAIT);
  if (got <= 0 && !would_block(got)) end();
}

void ClosingSockets::Closing::end() noexcept {
  ended = true;
  poller->remove(socket);
  socket.reset();
}

}  // namespace tc::transport
