// SPDX-License-Identifier: Apache-2.0
#include "transport/network/network.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "base/plugin.h"
#include "base/speed.h"
#include "transport/origin.h"
#include "transport/ring/ring_connection.h"

namespace tc::transport {

namespace {

constexpr const char* fabric_plugin_name = "libthreechains_ucx.so";

// Up to this many sockets are read in each poll without epoll, which saves a system call. With more, epoll tells which
// of them are readable.
constexpr size_t most_polled_directly = speed::direct ? 2 : 0;
constexpr uint64_t descriptor_poll_gap_ns = 2'000'000;  // between calls of epoll when nothing urgent can come from it
constexpr uint32_t calls_per_clock = 4;                 // progress() calls between two readings of the clock
// Between two looks at the last bytes: there is no event for what a peer takes.
constexpr uint64_t closing_gap_ns = 200'000;
// Without a barrier in the other processes a sleeping node could miss a frame: then sleeps are this short.
constexpr uint64_t sleep_without_barrier_ns = 1'000'000;

constexpr std::array choices{std::pair{Choice::automatic, "auto"},   std::pair{Choice::shm, "shm"},
                             std::pair{Choice::unix_socket, "unix"}, std::pair{Choice::tcp, "tcp"},
                             std::pair{Choice::ucx, "ucx"},          std::pair{Choice::ucx_put, "ucx-put"}};

// A self-contained build has no UCX inside, and its plug-in for UCX names no library, which would be looked for where the
// wheel does not know it. Such a build loads UCX before the plug-in: the file that $TC_UCX names, else the system's
// libucp.so.0. TC_ERR_UNSUPPORTED: there is no UCX; the message says how to get it.
Status load_ucx_library() {
#ifdef TC_SELF_CONTAINED
  const char* const named = std::getenv("TC_UCX");
  const char* const file = named != nullptr && *named != '\0' ? named : "libucp.so.0";
  if (dlopen(file, RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  const char* const words = dlerror();
  return fail(
      TC_ERR_UNSUPPORTED,
      "UCX cannot be loaded ({}); install it (Debian: libucx0; pip: libucx-cu12), name its libucp.so.0 by $TC_UCX, or "
      "choose another transport",
      words != nullptr ? words : file);
#else
  return {};
#endif
}

// UCX has something to do: the next progress() does it.
struct FabricWatcher final : Watcher {
  void on_ready(uint32_t) noexcept override {}
} fabric_watcher;

}  // namespace

std::string_view choice_name(Choice choice) noexcept {
  return std::ranges::find(choices, choice, &decltype(choices)::value_type::first)->second;
}

Result<Choice> parse_choice(std::string_view name) {
  for (const auto& [choice, known] : choices)
    if (known == name) return choice;
  return fail(TC_ERR_INVALID, "'{}' is no transport: it is auto, shm, unix, tcp, ucx or ucx-put", name);
}

Result<std::unique_ptr<Transport>> Network::create(const NetworkOptions& options, Events& events) {
  if (!ring_size_is_valid(options.ring_bytes))
    return fail(TC_ERR_INVALID, "a ring of {} bytes: it must be a power of two from {} to {}", options.ring_bytes,
                min_ring_bytes, max_ring_bytes);
  std::unique_ptr<Network> made(new Network(options, events));
  TC_CHECK(made->start());
  return std::unique_ptr<Transport>(std::move(made));
}

Network::Network(const NetworkOptions& options, Events& events)
    : Hub(events, Transport::poll_state, [this](trust::TlsRole role) { return open_session(role); }),
      options_(options) {
  trusted_networks = options_.trusted_networks;
}

Status Network::start() {
  TC_CHECK(poller.open());
  can_use_rings_ = RingConnection::is_possible();
  if (options_.choice == Choice::ucx || options_.choice == Choice::ucx_put) return open_fabric();
  return {};
}

Status Network::open_fabric() {
  TC_CHECK(load_ucx_library());
  const auto library = open_plugin(fabric_plugin_name, options_.fabric_plugin);
  if (!library)
    return fail(TC_ERR_UNSUPPORTED,
                "the plug-in for UCX cannot be loaded ({}); install {} and UCX, or choose another transport",
                library.error().message, fabric_plugin_name);
  const auto found = find_in_plugin(*library, fabric_factory_name);
  if (!found) return context("the plug-in for UCX", found.error());
  auto options = options_.fabric;
  options.puts = options_.choice == Choice::ucx_put;
  Error error{TC_ERR_UNSUPPORTED, fmt::format("{} is not of this version of Three-Chains", fabric_plugin_name)};
  fabric_.reset(reinterpret_cast<FabricFactory>(*found)(fabric_plugin_version, options, *this, error));
  if (fabric_ == nullptr) return fail(std::move(error));
  return poller.add(fabric_->event_descriptor(), fabric_watcher, EPOLLIN);
}

Result<std::unique_ptr<trust::TlsSession>> Network::open_session(trust::TlsRole role) {
  if (tls_ == nullptr) {
    auto key = options_.key;
    if (key == nullptr) {
      TC_ASSIGN(auto fresh, trust::KeyPair::fresh());
      key = std::make_shared<const trust::KeyPair>(std::move(fresh));
    }
    TC_ASSIGN(tls_, trust::open_tls(std::move(key), options_.tls_plugin));
  }
  return tls_->make_session(role);
}

Network::~Network() {
  for (const auto& path : paths_) (void)::unlink(path.c_str());
}

// Ends, because each closed connection has its ClosingTime.
void Network::finish() noexcept {
  for (;;) {
    if (fabric_ != nullptr) (void)fabric_->progress();
    (void)poller.poll();
    const uint64_t now = now_ns();
    (void)closing_sockets.sweep(now);
    if ((fabric_ == nullptr || !fabric_->has_unfinished()) && !closing_sockets.has_unfinished()) return;
    poller.wait(Deadline::at_ns(now + closing_gap_ns));
  }
}

uint64_t Network::trim(uint64_t now_ns) noexcept {
  uint64_t next = UINT64_MAX;
  // Not polled_rings_: a connection that has ended since the last progress() is still there.
  for (auto* const connection : connections)
    if (connection->is_open() && connection->is_polled())
      next = std::min(next, static_cast<RingConnection*>(connection)->trim(now_ns));
  return next;
}

unsigned Network::progress() noexcept {
  unsigned done = has_changed ? deliver_changes() : 0;  // first, because connections may have ended
  if (!flush_list.empty()) flush_list.flush_all();
  done += receive();
  if (has_changed) [[unlikely]]
    done += deliver_changes();
  if (!flush_list.empty()) flush_list.flush_all();
  return done;
}

unsigned Network::receive() noexcept {
  ++calls_;
  if (is_armed_) [[unlikely]] {
    end_sleep();
    (void)poll_descriptors();
    choose_polling();
  }
  unsigned done = fabric_ != nullptr ? fabric_->progress() : 0;
  for (auto* const connection : polled_sockets_) done += connection->poll() ? 1u : 0u;
  if (!polls_directly_ || in_transition_ || poll_state.late) return done + poll_descriptors();
  if (calls_ % calls_per_clock == 0 && now_ns() - last_descriptor_poll_ns_ >= descriptor_poll_gap_ns)
    done += poll_descriptors();
  return done;
}

unsigned Network::poll_descriptors() noexcept {
  const unsigned handled = poller.poll();
  if (polls_directly_ || has_transitions()) check_deadlines(now_ns());
  return handled;
}

bool Network::has_transitions() const noexcept {
  return in_transition_ || admission_.has_pending() || !closing_sockets.empty();
}

void Network::check_deadlines(uint64_t now) noexcept {
  last_descriptor_poll_ns_ = now;
  (void)admission_.sweep(now);
  (void)closing_sockets.sweep(now);
  for (size_t i = 0; i < connections.size(); ++i) connections[i]->check_deadline(now);
  for (auto* const connection : named_) connection->check_deadline(now);
  choose_polling();
}

// Chooses how each connection is polled, and how often descriptors are:
//   - rings: by their memory, in each poll of the node, by their links;
//   - up to two TCP sockets: by recv() in each progress();
//   - everything else, and more TCP sockets: by epoll. That is called in each progress() when frames can come by it or
//     a connection is greeting or closing, else every 2 ms.
void Network::choose_polling() noexcept {
  try {
    polled_sockets_.clear();
    polled_rings_.clear();
    sockets_ = 0;
    in_transition_ = admission_.has_pending() || !closing_sockets.empty();
    for (const auto* const connection : named_) in_transition_ |= connection->greeting_deadline_ns() != 0;
    for (auto* const connection : connections) {
      in_transition_ |= connection->greeting_deadline_ns() != 0;
      if (!connection->is_open()) continue;
      if (connection->is_polled()) polled_rings_.push_back(static_cast<RingConnection*>(connection));
      if (!TcpConnection::is_name(connection->transport())) continue;
      ++sockets_;
      if (sockets_ <= most_polled_directly) polled_sockets_.push_back(static_cast<TcpConnection*>(connection));
    }
    if (sockets_ > most_polled_directly) polled_sockets_.clear();
  } catch (const std::exception&) {
    polled_sockets_.clear();  // no memory: epoll serves all of them
    sockets_ = connections.size();
  }
  polls_directly_ = sockets_ == polled_sockets_.size();
  poll_state.urgent = sockets_ != 0 || fabric_ != nullptr || in_transition_;
}

// The receivers may connect, so the list may grow while it is gone through.
unsigned Network::deliver_changes() noexcept {
  unsigned done = 0;
  has_changed = false;
  for (size_t i = 0; i < connections.size(); ++i) {
    connections[i]->deliver_leftover();
    done += connections[i]->deliver_loss() ? 1u : 0u;
  }
  for (size_t i = 0; i < named_.size(); ++i) done += named_[i]->deliver_loss() ? 1u : 0u;
  choose_polling();
  return done;
}

bool Network::has_frames() const noexcept {
  return has_changed || std::ranges::any_of(polled_rings_, [](auto* connection) { return connection->has_frames(); });
}

// True: the node may sleep until the deadline. The difficulty is a frame that a peer writes into a ring at this moment.
// The sender stores the header, then loads our sleep flag to see whether it must wake us. There is no fence between the
// two, because every frame would pay for it. We pay instead, once for each sleep:
//
//   1. Set the flag on every ring.
//   2. Run a barrier in all processes (membarrier). A sender has now either made its header visible, or it will see the
//      flag.
//   3. Poll once more: this finds frames of the first kind. The second kind wakes us.
bool Network::prepare_sleep(Deadline& deadline) noexcept {
  if (has_frames()) return false;
  if (!polled_rings_.empty()) {
    for (auto* const connection : polled_rings_) connection->set_sleeping(true);
    if (!RingConnection::barrier())
      deadline = Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + sleep_without_barrier_ns));
    if (has_frames()) return false;
  }
  return fabric_ == nullptr || fabric_->arm();
}

// Does what is due, and brings the deadline forward to what is due next.
void Network::run_due_work(Deadline& deadline) noexcept {
  if (has_changed) (void)deliver_changes();
  flush_list.flush_all();
  const uint64_t now = now_ns();
  uint64_t until = deadline.at_ns();
  if (has_transitions()) {
    for (const auto due : {admission_.sweep(now), closing_sockets.sweep(now)})
      if (due != 0) until = std::min(until, due);
    const auto wake_by_deadline_of = [&](const auto* connection) {
      if (const auto due = connection->greeting_deadline_ns(); due != 0) until = std::min(until, due);
    };
    std::ranges::for_each(connections, wake_by_deadline_of);
    std::ranges::for_each(named_, wake_by_deadline_of);
  }
  if (const auto due = fabric_ != nullptr ? fabric_->next_time() : 0; due != 0) until = std::min(until, due);
  deadline = Deadline::at_ns(until);
}

void Network::end_sleep() noexcept {
  is_armed_ = false;
  for (auto* const connection : polled_rings_) connection->set_sleeping(false);
}

void Network::sleep(Deadline deadline) noexcept {
  run_due_work(deadline);
  const bool asleep = prepare_sleep(deadline);
  poller.wait(asleep ? deadline : Deadline::at_ns(0));
  end_sleep();
  if (has_transitions()) check_deadlines(now_ns());
  if (fabric_ != nullptr) (void)fabric_->progress();
  if (has_changed) (void)deliver_changes();
  flush_list.flush_all();
}

// What has come by descriptors is taken in before: epoll's descriptor is readable only when something new comes. Flags in
// rings are taken back by the next progress(), which must come with the next poll.
bool Network::arm(Deadline& deadline) noexcept {
  const bool has_come = poller.poll() != 0 || poller.take_wake();
  run_due_work(deadline);
  poll_state.urgent = is_armed_ = true;
  if (!has_come && prepare_sleep(deadline)) return true;
  end_sleep();
  return false;
}

namespace {

// A connection to that Unix socket, if a process of our own user listens there.
Fd connect_to_own_user(const SocketAddress& address) {
  auto socket = connect_to(address);
  return socket && origin_of(*socket).same_user ? std::move(*socket) : Fd();
}

// The same at a path, where there is no other way to reach the node.
Result<Fd> connect_to_path(const SocketAddress& path, std::string_view address) {
  auto socket = connect_to(path);
  const auto origin = socket ? origin_of(*socket) : Origin();
  if (origin.same_user) return std::move(*socket);
  if (origin.why_not_same_user.empty())
    return fail(TC_ERR_DISCONNECTED, "no process of this user listens at {}", address);
  return fail(TC_ERR_DISCONNECTED, "{} listens at {}; this process runs as user {}, too, but {}", origin.text, address,
              ::geteuid(), origin.why_not_same_user);
}

// A connection to the local listener that belongs to one of these addresses. A node that listens on all interfaces has
// named it after "0.0.0.0" or "[::]".
Fd connect_to_local_listener(const std::vector<SocketAddress>& addresses, bool shares_memory) {
  for (const auto& address : addresses) {
    if (!address.is_here()) continue;
    for (const auto& name : {address.text(), address.any_interface(), fmt::format("[::]:{}", address.port())})
      if (Fd socket = connect_to_own_user(SocketAddress::local_listener_of(name, shares_memory))) return socket;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Connection>> Network::connect(std::string_view address, ByteView hello) {
  if (address.starts_with(unix_prefix)) {
    TC_ASSIGN(const auto path, SocketAddress::at_path(address.substr(unix_prefix.size())));
    TC_ASSIGN(auto socket, connect_to_path(path, address));
    return connect_locally(std::move(socket), may_start_rings(), address, hello);
  }
  TC_ASSIGN(auto where, parse_host_and_port(address));
  if (const auto found = numeric_addresses(where); !found.empty()) return connect_to_one_of(found, address, hello);
  return NamedConnection::start(
      *this, name_lookups_, named_, std::string(address), std::move(where),
      [this, address = std::string(address), hello = Bytes(hello.begin(), hello.end())](
          const std::vector<SocketAddress>& found) { return connect_to_one_of(found, address, hello); });
}

bool Network::is_by_name(std::string_view address) const {
  if (address.starts_with(unix_prefix)) return false;
  const auto where = parse_host_and_port(address);
  return where && numeric_addresses(*where).empty();
}

// `found`: what the address stands for, the best first.
Result<std::unique_ptr<SocketConnection>> Network::connect_to_one_of(const std::vector<SocketAddress>& found,
                                                                     std::string_view address, ByteView hello) {
  const auto choice = options_.choice;
  if (choice == Choice::automatic || choice == Choice::shm || choice == Choice::unix_socket) {
    if (Fd socket = connect_to_local_listener(found, true))
      return connect_locally(std::move(socket), may_start_rings(), address, hello);
    if (Fd socket = connect_to_local_listener(found, false))
      return connect_locally(std::move(socket), false, address, hello);
  }
  if (choice == Choice::shm || choice == Choice::unix_socket)
    return fail(TC_ERR_UNSUPPORTED, "no process of this user listens at {} on this host, so {}", address,
                choice == Choice::shm ? "no memory can be shared with it" : "there is no Unix socket to it");
  auto next = found.begin();
  auto socket = connect_to(*next++);
  while (!socket && next != found.end()) socket = connect_to(*next++);  // as for IPv6 where there is no route
  if (!socket) return context(fmt::format("connecting to {}", address), std::move(socket).error());
  std::vector<SocketAddress> others(next, found.end());
  if (fabric_ != nullptr) return fabric_->connect(std::move(*socket), std::string(address), std::move(others), hello);
  return TcpConnection::connect(*this, std::move(*socket), std::string(address), std::move(others), hello);
}

bool Network::may_start_rings() const noexcept { return can_use_rings_ && options_.choice != Choice::unix_socket; }

// To a process of our own user. Without rings, which this kernel or the peer's may not allow, by a stream of bytes.
Result<std::unique_ptr<SocketConnection>> Network::connect_locally(Fd socket, bool by_ring, std::string_view address,
                                                                   ByteView hello) {
  if (by_ring)
    return RingConnection::connect(*this, std::move(socket), std::string(address), options_.ring_bytes, hello);
  if (options_.choice == Choice::shm)
    return fail(TC_ERR_UNSUPPORTED, "no memory can be shared with {}: a kernel has no membarrier", address);
  return TcpConnection::connect(*this, std::move(socket), std::string(address), {}, hello);
}

void Network::on_greeted(GreetedPeer peer) {
  auto connection = accept(peer);
  if (connection) return events.on_accept(std::move(*connection), peer.greeting.hello);
  events.on_refused(peer.origin.text, connection.error());
  if (!peer.stream.send_at_once(encode_refusal(connection.error()))) return;
  Bytes rest = peer.stream.finish({});
  finish_closing(peer.stream.take_socket(), std::move(rest), peer.origin.text);
}

// A stream goes by the name that follows from how the peer has come, so the peer must have meant just that.
Result<std::unique_ptr<SocketConnection>> Network::accept(GreetedPeer& peer) {
  const auto& wanted = peer.greeting.transport;
  const auto& origin = peer.origin;
  // Memory is shared with processes of our own user only, even if others may connect.
  if (origin.same_user && can_use_rings_ && wanted == RingConnection::name)
    return RingConnection::accept(*this, peer.stream, origin, peer.greeting, std::move(peer.descriptor));
  if (wanted == TcpConnection::name_for(origin)) return TcpConnection::accept(*this, peer.stream, origin);
  if (!origin.is_local && fabric_ != nullptr && wanted.starts_with("ucx"))
    return fabric_->accept(peer.stream, origin, peer.greeting);
  return fail(TC_ERR_UNSUPPORTED, "the peer wants the transport '{}', which this node does not accept{}", wanted,
              wanted.starts_with("ucx") ? fmt::format("; start it with the option transport={}", wanted) : "");
}

namespace {

Result<Fd> listen_at_first(std::string_view address) {
  TC_ASSIGN(const auto found, resolve(address, true));
  return listen_at(found.front());
}

}  // namespace

Result<std::string> Network::listen(std::string_view address) {
  if (address.starts_with(unix_prefix)) return listen_on_path(address.substr(unix_prefix.size()));
  const bool is_given = address.starts_with(descriptor_prefix);
  auto socket = is_given ? take_listener(address.substr(descriptor_prefix.size())) : listen_at_first(address);
  if (!socket) return context(fmt::format("listening at {}", address), std::move(socket).error());
  return listen_on(std::move(*socket));
}

Result<std::string> Network::listen_on(Fd socket) {
  auto name = local_address(socket).text();
  TC_CHECK(admission_.open(std::move(socket), false));
  open_local_listener(name);
  return name;
}

// The port is ours, so the Unix socket's name, which follows from it, should be free. If another user has taken the
// name, peers reach us by the port only.
void Network::open_local_listener(const std::string& listening) {
  auto socket = listen_at(SocketAddress::local_listener_of(listening, can_use_rings_));
  auto opened = socket ? admission_.open(std::move(*socket), true) : fail(socket.error());
  if (!opened)
    events.on_warning(
        fmt::format("no process of this host can reach {} by a Unix socket or shared memory, only by TCP: its Unix "
                    "socket is not available: {}",
                    listening, opened.error().message));
}

Result<std::string> Network::listen_on_path(std::string_view path) {
  TC_ASSIGN(const auto address, SocketAddress::at_path(path));
  const std::string file(path);
  struct stat found{};
  if (::lstat(file.c_str(), &found) == 0 && S_ISSOCK(found.st_mode)) {
    if (connect_to(address))
      return fail(TC_ERR_IO, "listening at unix:{}: another process listens there already", path);
    (void)::unlink(file.c_str());  // left behind by a process that died
  }
  auto socket = listen_at(address);
  if (!socket) return context(fmt::format("listening at unix:{}", path), std::move(socket).error());
  (void)::chmod(file.c_str(), S_IRUSR | S_IWUSR);  // other users would be refused; this stops them earlier
  paths_.push_back(file);
  TC_CHECK(admission_.open(std::move(*socket), true));
  return std::string(unix_prefix) + file;
}

}  // namespace tc::transport
