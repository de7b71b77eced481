// SPDX-License-Identifier: Apache-2.0
#include "transport/network/reception.h"

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

constexpr AdmissionLimits limits;
constexpr uint64_t greeting_ns = 5'000'000'000;  // a stranger that connects and says nothing is dropped
// Of one listener at a time: then others get their turn.
constexpr int accepts_a_turn = 64;
// Descriptors that peers do not get: the node's own, for code, files and connections that it starts. More of them are kept
// from strangers than from our own user.
constexpr int kept_from_all = 16, kept_from_strangers = 64;

int kept_from(const Origin& origin) noexcept { return origin.same_user ? kept_from_all : kept_from_strangers; }

int limit_of_descriptors() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) return INT_MAX;
  return static_cast<int>(limit.rlim_cur);
}

}  // namespace

Reception::Reception(Poller& poller, Farewells& farewells, Host& host)
    : poller_(poller), farewells_(farewells), host_(host), descriptor_limit_(limit_of_descriptors()) {}

Reception::~Reception() {
  for (const auto& listener : listeners_) poller_.remove(listener.socket);
  for (const auto& one : half_open_) poller_.remove(one.guest.socket);
}

Status Reception::open(Fd listener, bool is_local) {
  if (!spare_) spare_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  listeners_.emplace_back(*this, std::move(listener), is_local);
  return poller_.add(listeners_.back().socket, listeners_.back(), EPOLLIN);
}

void Reception::accept(Listener& listener) noexcept {
  for (int i = 0; i < accepts_a_turn; ++i) {
    Fd socket(accept4(listener.socket.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket) {
      if (errno == EMFILE || errno == ENFILE) turn_one_away(listener);
      return;
    }
    try {
      welcome(std::move(socket), listener.is_local);
    } catch (const std::exception&) {
      return;  // no memory: the socket is closed, the others wait
    }
  }
}

// Without a descriptor nobody can be accepted, and whoever is not keeps the listener readable for ever.
void Reception::turn_one_away(const Listener& listener) noexcept {
  spare_.reset();
  Fd(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC)).reset();
  spare_ = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  try {
    host_.on_refused("somebody", Error{TC_ERR_LIMIT, "this process has no more file descriptors"});
  } catch (const std::exception&) {
  }
}

void Reception::welcome(Fd socket, bool is_local) {
  auto origin = origin_of(socket);
  if (auto may = host_.may_connect(origin); !may) return refuse(std::move(socket), origin.text, may.error());
  make_room_for(origin);
  if (!has_descriptors_for(socket, origin))
    return refuse(std::move(socket), origin.text,
                  Error{TC_ERR_LIMIT, fmt::format("this node may have {} descriptors open, and the last {} are not for "
                                                  "peers from there",
                                                  descriptor_limit_, kept_from(origin))});
  const int on = 1;
  if (!is_local) (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  auto& one = half_open_.emplace_back(*this, Guest{std::move(socket), std::move(origin), {}, {}});
  one.give_up_at_ns = now_ns() + greeting_ns;
  if (!poller_.add(one.guest.socket, one, EPOLLIN)) half_open_.pop_back();
}

// A socket whose number is among the last ones gets a lower one when others go for it.
bool Reception::has_descriptors_for(Fd& socket, const Origin& origin) noexcept {
  while (socket.get() >= descriptor_limit_ - kept_from(origin)) {
    if (!free_descriptor_for(origin)) return false;
    Fd lower(fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
    if (lower && lower.get() < socket.get()) socket = std::move(lower);
  }
  return true;
}

// Those go first who were refused already, then strangers who have not greeted, the oldest first.
bool Reception::free_descriptor_for(const Origin& origin) noexcept {
  if (farewells_.drop_refused()) return true;
  for (const bool ours : {false, true}) {
    if (ours && !origin.same_user) break;
    const auto oldest = std::ranges::find_if(
        half_open_, [&](const HalfOpen& one) { return !one.over && one.guest.origin.same_user == ours; });
    if (oldest == half_open_.end()) continue;
    drop(*oldest, Error{TC_ERR_LIMIT, "no descriptor"});  // a short word: it needs no memory
    (void)farewells_.drop_refused();
    return true;
  }
  return false;
}

void Reception::make_room_for(const Origin& origin) {
  const auto counted_as = [](const Origin& from) { return from.same_user ? std::string_view() : from.host; };
  std::vector<std::string_view> hosts;
  std::vector<HalfOpen*> waiting;
  for (auto& one : half_open_) {
    if (one.over) continue;  // goes with the next sweep()
    hosts.push_back(counted_as(one.guest.origin));
    waiting.push_back(&one);
  }
  if (const auto index = who_must_go(hosts, counted_as(origin), limits))
    drop(*waiting[*index], Error{TC_ERR_LIMIT, "others come, and it has not greeted"});
}

void Reception::go_on(HalfOpen& one) noexcept {
  if (one.over) return;
  try {
    if (auto went = one.greeter.go_on(one.guest.socket); !went) return drop(one, went.error());
    if (!one.greeter.has_heard()) return;
    one.over = true;
    poller_.remove(one.guest.socket);
    one.guest.greeting = std::move(one.greeter.heard());
    one.guest.descriptor = one.greeter.take_descriptor();
    host_.on_guest(std::move(one.guest));
  } catch (const std::exception& problem) {
    drop(one, Error{TC_ERR_NO_MEMORY, problem.what()});
  }
}

// One that has greeted with something we do not understand is told so; one that went away cannot be.
void Reception::drop(HalfOpen& one, const Error& why) noexcept {
  one.over = true;
  poller_.remove(one.guest.socket);
  try {
    if (one.guest.socket) refuse(std::move(one.guest.socket), one.guest.origin.text, why);
  } catch (const std::exception&) {
  }
  one.guest.socket.reset();
}

void Reception::refuse(Fd socket, const std::string& who, const Error& why) {
  host_.on_refused(who, why);
  if (say_at_once(socket, encode_refusal(why))) farewells_.add_refused(std::move(socket));
}

void Reception::time_out(HalfOpen& one) noexcept {
  try {
    drop(one, Error{TC_ERR_TIMEOUT, fmt::format("it did not greet within {} s", greeting_ns / 1'000'000'000)});
  } catch (const std::bad_alloc&) {
    drop(one, Error{TC_ERR_TIMEOUT, "it is late"});
  }
}

uint64_t Reception::sweep(uint64_t now) noexcept {
  for (auto& one : half_open_)
    if (!one.over && now >= one.give_up_at_ns) time_out(one);
  std::erase_if(half_open_, [](const HalfOpen& one) { return one.over; });
  return half_open_.empty() ? 0 : half_open_.front().give_up_at_ns;
}

}  // namespace tc::transport
