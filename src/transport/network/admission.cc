// SPDX-License-Identifier: Apache-2.0
#include "transport/network/admission.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <map>
#include <new>
#include <vector>

#include "base/random.h"
#include "transport/address.h"
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

Admission::Admission(Hub& hub, OnGreeted on_greeted)
    : hub_(hub), on_greeted_(std::move(on_greeted)), descriptor_limit_(limit_of_descriptors()) {}

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
    hub_.events.on_refused("a peer", Error{TC_ERR_LIMIT, "this process has no more file descriptors"});
  } catch (const std::exception&) {
  }
}

// The kernel says at once which user a peer on a Unix socket is.
void Admission::admit(Fd socket, bool is_local) {
  auto origin = origin_of(socket, hub_.trusted_networks);
  if (is_local)
    if (auto may = hub_.events.may_connect(origin); !may)
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
  auto& peer = pending_.emplace_back(hub_, *this, std::move(socket), std::move(origin), now_ns() + greeting_ns);
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
  if (hub_.closing_sockets.close_oldest_refused()) return true;
  for (const bool ours : {false, true}) {
    if (ours && !origin.same_user) break;
    const auto oldest = std::ranges::find_if(
        pending_, [&](const PendingPeer& peer) { return !peer.has_ended() && peer.origin().same_user == ours; });
    if (oldest == pending_.end()) continue;
    on_failed(*oldest, Error{TC_ERR_LIMIT, "no descriptor"});  // short: it allocates nothing
    (void)hub_.closing_sockets.close_oldest_refused();
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

void Admission::on_greeted(PendingPeer& peer) { on_greeted_(peer.take()); }

// Sends the reason, unless the peer is gone.
void Admission::on_failed(PendingPeer& peer, const Error& why) noexcept {
  const bool can_be_told = peer.can_be_told();
  auto taken = peer.take();
  try {
    if (can_be_told) return refuse(std::move(taken.stream), taken.origin.text, why);
    hub_.events.on_refused(taken.origin.text, why);
    hub_.closing_sockets.add_refused(taken.stream.take_socket());  // it may have been sent an alert
  } catch (const std::exception&) {
  }
}

void Admission::refuse(SocketStream stream, const std::string& origin, const Error& why) {
  hub_.events.on_refused(origin, why);
  if (!stream.send_at_once(encode_refusal(why))) return;
  Bytes rest = stream.finish({});
  hub_.closing_sockets.add_refused(stream.take_socket(), std::move(rest));
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

namespace {

constexpr std::byte tls_handshake{0x16};  // the first byte of a ClientHello; a plain greeting begins with 'T'

}  // namespace

PendingPeer::PendingPeer(Hub& hub, Admission& admission, Fd socket, Origin origin, uint64_t deadline)
    : hub_(hub),
      admission_(admission),
      deadline_ns_(deadline),
      counted_host_(origin.same_user ? std::string() : transport::counted_host(origin.host)),
      stage_(origin.is_local ? Stage::greeting : Stage::first_byte),
      peer_{SocketStream(std::move(socket)), std::move(origin), {}, {}} {}

PendingPeer::~PendingPeer() { hub_.poller.remove(peer_.stream.socket()); }

Status PendingPeer::start() { return hub_.poller.add(peer_.stream.socket(), *this, watched_); }

GreetedPeer PendingPeer::take() noexcept {
  if (has_proved_its_key()) peer_.origin.handshake_ns = now_ns() - (deadline_ns_ - greeting_ns);
  if (stage_ == Stage::handshake && can_be_told()) (void)peer_.stream.take_session();  // to be told in plain
  stage_ = Stage::ended;
  handshake_.reset();
  hub_.poller.remove(peer_.stream.socket());
  return std::move(peer_);
}

void PendingPeer::watch(uint32_t events) noexcept {
  if (watched_ == events) return;
  watched_ = events;
  hub_.poller.change(peer_.stream.socket(), *this, events);
}

template <class Step>
void PendingPeer::run(Step step) noexcept {
  if (has_ended()) return;
  try {
    if (auto went = step(); !went) admission_.on_failed(*this, went.error());
  } catch (const std::exception& problem) {
    admission_.on_failed(*this, Error{TC_ERR_NO_MEMORY, problem.what()});
  }
}

void PendingPeer::on_ready(uint32_t) noexcept {
  run([this] { return progress(); });
}

Status PendingPeer::progress() {
  if (stage_ == Stage::first_byte) return judge_first_byte();
  if (stage_ == Stage::handshake) return handshake_->progress(), Status{};
  return stage_ == Stage::greeting ? continue_greeting() : Status{};
}

// The byte stays in the socket.
Status PendingPeer::judge_first_byte() {
  std::byte first{};
  const auto got = ::recv(peer_.stream.socket().get(), &first, 1, MSG_PEEK | MSG_DONTWAIT);
  if (would_block(got)) return {};
  if (got < 0) return fail(TC_ERR_DISCONNECTED, "{}", system_words(errno));
  if (got == 0) return fail(TC_ERR_DISCONNECTED, "it ended the connection before it greeted");
  if (first == tls_handshake) return begin_handshake();
  if (needs_encryption(peer_.origin))
    return fail(TC_ERR_DENIED,
                "this node takes only encrypted connections from {}; its operator can allow plain ones from there with "
                "trust-network={}",
                peer_.origin.host, peer_.origin.host);
  TC_CHECK(hub_.events.may_connect(peer_.origin));
  stage_ = Stage::greeting;
  return continue_greeting();
}

Status PendingPeer::begin_handshake() {
  TC_ASSIGN(auto session, hub_.make_session(trust::TlsRole::server));
  peer_.stream.set_session(std::move(session));
  stage_ = Stage::handshake;
  handshake_.emplace(hub_.handshakes, peer_.stream, trust::TlsRole::server, static_cast<Handshake::Owner&>(*this))
      .progress();
  return {};
}

void PendingPeer::on_handshake(Status result) noexcept {
  handshake_.reset();
  run([&]() -> Status {
    TC_CHECK(std::move(result));
    stage_ = Stage::greeting;
    peer_.origin.key = peer_.stream.session()->peer_key();
    peer_.origin.is_key_temporary = peer_.stream.session()->is_peer_key_temporary();
    TC_CHECK(hub_.events.may_connect(peer_.origin));
    watch(EPOLLIN);
    return continue_greeting();
  });
}

Status PendingPeer::continue_greeting() {
  TC_CHECK(greeter_.progress(peer_.stream));
  if (!greeter_.has_received()) return {};
  peer_.greeting = std::move(greeter_.received());
  peer_.descriptor = greeter_.take_descriptor();
  admission_.on_greeted(*this);
  return {};
}

namespace {

size_t count_of(std::span<const PendingCount> pending, std::string_view host) noexcept {
  return static_cast<size_t>(std::ranges::count(pending, host, &PendingCount::host));
}

// The host, other than our own user's processes, with most connections.
std::string_view most_counted(std::span<const PendingCount> pending) {
  std::map<std::string_view, size_t> counts;
  for (const auto& one : pending)
    if (!one.host.empty()) ++counts[one.host];
  const auto most = std::ranges::max_element(counts, {}, &std::pair<const std::string_view, size_t>::second);
  return most == counts.end() ? std::string_view() : most->first;
}

std::optional<size_t> random_one_of(std::span<const PendingCount> pending, std::string_view host, uint64_t random) {
  for (const bool proved : {false, true}) {
    const auto goes = [&](const PendingCount& one) { return one.host == host && one.has_proved_its_key == proved; };
    const auto count = static_cast<uint64_t>(std::ranges::count_if(pending, goes));
    if (count == 0) continue;
    for (size_t i = 0, before = 0; i < pending.size(); ++i)
      if (goes(pending[i]) && before++ == random % count) return i;
  }
  return {};
}

}  // namespace

std::string counted_host(std::string_view address) {
  std::string host(address);
  in6_addr bytes{};
  if (inet_pton(AF_INET6, host.c_str(), &bytes) != 1) return host;
  std::fill(std::begin(bytes.s6_addr) + 8, std::end(bytes.s6_addr), uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, &bytes, text.data(), text.size()) + std::string("/64");
}

std::optional<size_t> pending_to_evict(std::span<const PendingCount> pending, std::string_view host,
                                       const PendingLimits& limits, uint64_t random) {
  const size_t same = count_of(pending, host), ours = count_of(pending, {});
  if (same >= (host.empty() ? limits.of_our_user : limits.of_one_host)) return random_one_of(pending, host, random);
  if (host.empty() || pending.size() - ours < limits.of_all_hosts) return {};
  return random_one_of(pending, most_counted(pending), random);
}

}  // namespace tc::transport
