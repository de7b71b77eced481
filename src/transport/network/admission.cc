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

#include "base/random.h"
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

Admission::Admission(Hub& hub, ClosingSockets& closing_sockets, Host& host)
    : hub_(hub), closing_sockets_(closing_sockets), host_(host), descriptor_limit_(limit_of_descriptors()) {}

Admission::~Admission() {
  for (const auto& listener : listeners_) hub_.poller.remove(listener.socket);
}

Status Admission::open(Fd listener, bool is_local) {
  if (!spare_descriptor_) spare_descriptor_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  TC_CHECK(check_descriptor_limit(is_local));
  listeners_.emplace_back(*this, std::move(listener), is_local);
  return hub_.poller.add(listeners_.back().socket, listeners_.back(), EPOLLIN);
}

// A node that could take no peer at all does not start: nobody would see why its peers are refused.
Status Admission::check_descriptor_limit(bool is_local) {
  const Fd next(::open("/dev/null", O_RDONLY | O_CLOEXEC));  // gets the number that the next peer's socket would
  const int open = next ? next.get() : descriptor_limit_;
  if (open + reserved_from_all >= descriptor_limit_)
    return fail(
        TC_ERR_LIMIT,
        "this process may open {} file descriptors (ulimit -n) when it needs {} to take a peer: {} are open, and "
        "{} are reserved for code, files and connections that it starts",
        descriptor_limit_, open + reserved_from_all + 1, open, reserved_from_all);
  if (!is_local && open + reserved_from_others >= descriptor_limit_)
    hub_.events.on_warning(
        fmt::format("peers of other users and hosts are refused: this process may open {} file descriptors (ulimit -n) "
                    "when it needs {} to take one of them",
                    descriptor_limit_, open + reserved_from_others + 1));
  return {};
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

// Who a peer on a Unix socket is, is known at once.
void Admission::admit(Fd socket, bool is_local) {
  auto origin = origin_of(socket, hub_.trusted_networks);
  if (is_local)
    if (auto may = host_.may_connect(origin); !may)
      return refuse(SocketStream(std::move(socket)), origin.text, may.error());
  make_room_for(origin);
  if (!has_descriptors_for(socket, origin))
    return refuse(
        SocketStream(std::move(socket)), origin.text,
        Error{TC_ERR_LIMIT, fmt::format("this node may open {} file descriptors, and the last {} are reserved: "
                                        "peers of this origin do not get them",
                                        descriptor_limit_, reserved_from(origin))});
  const int on = 1;
  if (!is_local) (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto& peer = pending_.emplace_back(hub_, static_cast<PendingPeer::Owner&>(*this), std::move(socket),
                                     std::move(origin), now_ns() + greeting_ns);
  if (!peer.start()) pending_.pop_back();
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
        pending_, [&](const PendingPeer& peer) { return !peer.has_ended() && peer.origin().same_user == ours; });
    if (oldest == pending_.end()) continue;
    on_failed(*oldest, Error{TC_ERR_LIMIT, "no descriptor"});  // short: it allocates nothing
    (void)closing_sockets_.close_oldest_refused();
    return true;
  }
  return false;
}

void Admission::make_room_for(const Origin& origin) {
  std::vector<PendingCount> counts;
  std::vector<PendingPeer*> candidates;
  for (auto& peer : pending_) {
    if (peer.has_ended()) continue;  // removed by the next sweep()
    counts.push_back({peer.counted_host(), peer.has_proved_its_key()});
    candidates.push_back(&peer);
  }
  const auto host = origin.same_user ? std::string() : counted_host(origin.host);
  if (const auto index = pending_to_evict(counts, host, pending_limits, random_number()))
    on_failed(*candidates[*index], Error{TC_ERR_LIMIT, "too many peers connect to this node"});
}

void Admission::on_greeted(PendingPeer& peer) { host_.on_greeted(peer.take()); }

// Sends the reason, unless the peer is gone.
void Admission::on_failed(PendingPeer& peer, const Error& why) noexcept {
  const bool can_be_told = peer.can_be_told();
  auto taken = peer.take();
  try {
    if (can_be_told) return refuse(std::move(taken.stream), taken.origin.text, why);
    host_.on_refused(taken.origin.text, why);
    closing_sockets_.add_refused(taken.stream.take_socket());  // it may have been sent an alert
  } catch (const std::exception&) {
  }
}

void Admission::refuse(SocketStream stream, const std::string& origin, const Error& why) {
  host_.on_refused(origin, why);
  if (!stream.send_at_once(encode_refusal(why))) return;
  Bytes rest = stream.finish({});
  closing_sockets_.add_refused(stream.take_socket(), std::move(rest));
}

void Admission::expire(PendingPeer& peer) noexcept {
  try {
    on_failed(peer, Error{TC_ERR_TIMEOUT, fmt::format("it did not greet within {} s", greeting_ns / 1'000'000'000)});
  } catch (const std::bad_alloc&) {
    on_failed(peer, Error{TC_ERR_TIMEOUT, "too late"});
  }
}

uint64_t Admission::sweep(uint64_t now) noexcept {
  for (auto& peer : pending_)
    if (!peer.has_ended() && now >= peer.deadline_ns()) expire(peer);
  std::erase_if(pending_, [](const PendingPeer& peer) { return peer.has_ended(); });
  return pending_.empty() ? 0 : pending_.front().deadline_ns();
}

}  // namespace tc::transport
