// SPDX-License-Identifier: Apache-2.0
#include "transport/network/farewells.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace tc::transport {

namespace {

constexpr uint64_t farewell_ns = 1'000'000'000;
constexpr size_t most_closed = 256, most_refused = 32;

bool must_wait(ssize_t result) noexcept { return result < 0 && (errno == EAGAIN || errno == EINTR); }

}  // namespace

// Null when there are fewer than `least` of that kind.
Farewells::Farewell* Farewells::oldest(bool is_refused, size_t least) noexcept {
  const auto counts = [&](const Farewell& farewell) { return !farewell.over && farewell.is_refused == is_refused; };
  if (static_cast<size_t>(std::ranges::count_if(all_, counts)) < least) return nullptr;
  return &*std::ranges::find_if(all_, counts);
}

bool Farewells::drop_refused() noexcept {
  auto* const farewell = oldest(true, 1);
  if (farewell != nullptr) farewell->end();
  return farewell != nullptr;
}

void Farewells::take(Fd socket, Bytes unsent, bool is_refused) {
  if (auto* const first = oldest(is_refused, is_refused ? most_refused : most_closed)) first->end();
  auto& farewell = all_.emplace_back();
  farewell.socket = std::move(socket);
  farewell.unsent = std::move(unsent);
  farewell.is_refused = is_refused;
  farewell.poller = &poller_;
  farewell.give_up_at_ns = now_ns() + farewell_ns;
  if (!poller_.add(farewell.socket, farewell, EPOLLIN | EPOLLRDHUP | EPOLLOUT)) all_.pop_back();
}

uint64_t Farewells::sweep(uint64_t now) noexcept {
  std::erase_if(all_, [&](const Farewell& farewell) {
    const bool goes = farewell.over || now >= farewell.give_up_at_ns;
    if (goes) poller_.remove(farewell.socket);
    return goes;
  });
  return all_.empty() ? 0 : all_.front().give_up_at_ns;
}

bool Farewells::has_unsent() const noexcept {
  return std::ranges::any_of(all_, [](const Farewell& one) { return !one.over && one.sent < one.unsent.size(); });
}

void Farewells::Farewell::on_ready(uint32_t events) noexcept {
  if ((events & EPOLLOUT) != 0) send();
  if (!over) read();
}

void Farewells::Farewell::send() noexcept {
  while (sent < unsent.size()) {
    const auto took = ::send(socket.get(), unsent.data() + sent, unsent.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (must_wait(took)) return;
    if (took < 0) return end();
    sent += static_cast<size_t>(took);
  }
  (void)::shutdown(socket.get(), SHUT_WR);
  poller->change(socket, *this, EPOLLIN | EPOLLRDHUP);
}

// What still comes is of no interest to anybody. A peer that never ends has a second.
void Farewells::Farewell::read() noexcept {
  std::byte nothing[16 * 1024];
  const auto got = ::recv(socket.get(), nothing, sizeof nothing, MSG_DONTWAIT);
  if (got <= 0 && !must_wait(got)) end();
}

void Farewells::Farewell::end() noexcept {
  over = true;
  poller->remove(socket);
  socket.reset();
}

}  // namespace tc::transport
