// SPDX-License-Identifier: Apache-2.0
#include "transport/network/admission.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <vector>

#include "transport/origin.h"

namespace tc::transport {

namespace {

constexpr PendingLimits pending_limits;
constexpr uint64_t greeting_ns = 5'000'000'000;  // then a peer that has not greeted is refused
constexpr int accepts_per_poll = 64;             // for each listener, so that other descriptors are served as well
// The highest file descriptors, which peers do not get: the node needs them for code, files and connections that it
// starts. More of them are reserved from other users and hosts than from our own user.
constexpr int reserved_from_all = 16, reserved_from_others = 64;

int reserved_from(const Origin& origin) noexcept { return origin.same_user ? reserved_from_all : reserved_from_others; }

int limit_of_descriptors() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
  return static_cast<int>(limit.rlim_cur);
}

}  // namespace

Admission::Admission(Poller& poller, ClosingSockets& closing_sockets, Host& host)
    : poller_(poller), closing_sockets_(closing_sockets), host_(host), descriptor_limit_(limit_of_descriptors()) {}

Admission::~Admission() {
  for (const auto& listener : listeners_) poller_.remove(listener.socket);
  for (const auto& pending : pending_) poller_.remove(pending.peer.socket);
}

Status Admission::open(Fd listener, bool is_local) {
  if (!spare_descriptor_) spare_descriptor_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  listeners_.emplace_back(*this, std::move(listener), is_local);
  return poller_.add(listeners_.back().socket, listeners_.back(), EPOLLIN);
}

void Admission::accept(Listener& listener) noexcept {
  for (int i = 0; i < accepts_per_poll; ++i) {
    Fd socket(accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE) drop_without_descriptor(listener);
      return;
    }
    try {
      admit(std::move(socket), listener.is_local);
    } catch (const std::exception&) {
      return;  // no memory: this socket is closed, later ones stay in the listener's queue
    }
  }
}

// accept() needs a free descriptor. A peer that is never accepted would keep the listener readable, and epoll would
// return at once for ever. So the spare descriptor is closed for a moment, to accept the peer and close it.
void Admission::drop_without_descriptor(const Listener& listener) noexcept {
  spare_descriptor_.reset();
  Fd(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  spare_descriptor_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  try {
    host_.on_refused("a peer", Error{TC_ERR_LIMIT, "this process has no more file descriptors"});
  } catch (const std::exception&) {
  }
}

void Admission::admit(Fd socket, bool is_local) {
  auto origin = origin_of(socket);
  if (auto may = host_.may_connect(origin); !may) return refuse(std::move(socket), origin.text, may.error());
  make_room_for(origin);
  if (!has_descriptors_for(socket, origin))
    return refuse(
        std::move(socket), origin.text,
        Error{TC_ERR_LIMIT, fmt::format("this node may open {} file descriptors, and the last {} are reserved: "
                                        "peers of this origin do not get them",
                                        descriptor_limit_, reserved_from(origin))});
  const int on = 1;
  if (!is_local) (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto& pending = pending_.emplace_back(*this, GreetedPeer{std::move(socket), std::move(origin), {}, {}});
  pending.deadline_ns = now_ns() + greeting_ns;
  if (!poller_.add(pending.peer.socket, pending, EPOLLIN)) pending_.pop_back();
}

// A socket whose number is among the reserved ones is moved to a lower number. Closing other peers makes one free.
bool Admission::has_descriptors_for(Fd& socket, const Origin& origin) noexcept {
  while (socket.get() >= descriptor_limit_ - reserved_from(origin)) {
    if (!free_descriptor_for(origin)) return false;
    Fd lower(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
    if (lower && lower.get() < socket.get()) socket = std::move(lower);
  }
  return true;
}

// Closes one socket: that of a refused peer, else the oldest pending one of another user or host, else, for our own
// user, the oldest pending one of our own. False: there is none.
bool Admission::free_descriptor_for(const Origin& origin) noexcept {
  if (closing_sockets_.close_oldest_refused()) return true;
  for (const bool ours : {false, true}) {
    if (ours && !origin.same_user) break;
    const auto oldest = std::ranges::find_if(
        pending_, [&](const Pending& pending) { return !pending.ended && pending.peer.origin.same_user == ours; });
    if (oldest == pending_.end()) continue;
    refuse(*oldest, Error{TC_ERR_LIMIT, "no descriptor"});  // short: it allocates nothing
    (void)closing_sockets_.close_oldest_refused();
    return true;
  }
  return false;
}

void Admission::make_room_for(const Origin& origin) {
  const auto counted_as = [](const Origin& from) { return from.same_user ? std::string_view() : from.host; };
  std::vector<std::string_view> hosts;
  std::vector<Pending*> candidates;
  for (auto& pending : pending_) {
    if (pending.ended) continue;  // removed by the next sweep()
    hosts.push_back(counted_as(pending.peer.origin));
    candidates.push_back(&pending);
  }
  if (const auto index = pending_to_evict(hosts, counted_as(origin), pending_limits))
    refuse(*candidates[*index], Error{TC_ERR_LIMIT, "other peers connected while it did not greet"});
}

void Admission::progress(Pending& pending) noexcept {
  if (pending.ended) return;
  try {
    if (auto went = pending.greeter.progress(pending.peer.socket); !went) return refuse(pending, went.error());
    if (!pending.greeter.has_received()) return;
    pending.ended = true;
    poller_.remove(pending.peer.socket);
    pending.peer.greeting = std::move(pending.greeter.received());
    pending.peer.descriptor = pending.greeter.take_descriptor();
    host_.on_greeted(std::move(pending.peer));
  } catch (const std::exception& problem) {
    refuse(pending, Error{TC_ERR_NO_MEMORY, problem.what()});
  }
}

// Sends the reason, unless the peer is gone.
void Admission::refuse(Pending& pending, const Error& why) noexcept {
  pending.ended = true;
  poller_.remove(pending.peer.socket);
  try {
    if (pending.peer.socket) refuse(std::move(pending.peer.socket), pending.peer.origin.text, why);
  } catch (const std::exception&) {
  }
  pending.peer.socket.reset();
}

void Admission::refuse(Fd socket, const std::string& origin, const Error& why) {
  host_.on_refused(origin, why);
  if (send_at_once(socket, encode_refusal(why))) closing_sockets_.add_refused(std::move(socket));
}

void Admission::expire(Pending& pending) noexcept {
  try {
    refuse(pending, Error{TC_ERR_TIMEOUT, fmt::format("it did not greet within {} s", greeting_ns / 1'000'000'000)});
  } catch (const std::bad_alloc&) {
    refuse(pending, Error{TC_ERR_TIMEOUT, "too late"});
  }
}

uint64_t Admission::sweep(uint64_t now) noexcept {
  for (auto& pending : pending_)
    if (!pending.ended && now >= pending.deadline_ns) expire(pending);
  std::erase_if(pending_, [](const Pending& pending) { return pending.ended; });
  return pending_.empty() ? 0 : pending_.front().deadline_ns;
}

}  // namespace tc::transport
