// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx_transport.h"

#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hot_page.h"

namespace tc::transport {

namespace {

constexpr size_t max_peers = 65536;           // a token has 16 bits for the place
constexpr unsigned max_strangers = 128;       // accepted and not greeted yet: stops one who only connects
constexpr unsigned calls_per_turn = 16;       // progress() calls per turn of UCX when only rings are in use
constexpr unsigned calls_per_look = 4;        // progress() calls between looks at the clock
constexpr uint64_t look_gap_ns = 2'000'000;   // between looks at the sockets
constexpr uint64_t greeting_gap_ns = 20'000;  // the same while peers greet
constexpr uint64_t farewell_ms = 1000;        // how long the end waits for goodbyes to arrive

// What epoll hands back: a peer's token never has its upper 16 bits set, so these cannot be one.
constexpr uint64_t tag_wake = uint64_t{1} << 48, tag_listener = uint64_t{2} << 48;

}  // namespace

Result<std::unique_ptr<Transport>> UcxTransport::make(const UcxOptions& options, Events& events) {
  if (!ring_size_is_valid(options.ring_bytes))
    return fail(TC_ERR_INVALID, "a ring of {} bytes: it wants to be a power of two from {} to {}", options.ring_bytes,
                min_ring_bytes, max_ring_bytes);
  if (options.batch_bytes < 256 || options.batch_bytes > 1u << 20 || options.window_bytes < 4 * options.batch_bytes ||
      options.window_bytes > 1u << 30)
    return fail(TC_ERR_INVALID,
                "batches of {} bytes in a window of {}: 256 to 1 MiB, and four times that, are possible",
                options.batch_bytes, options.window_bytes);
  std::unique_ptr<UcxTransport> made(new UcxTransport(options, events));
  TC_CHECK(made->start());
  return std::unique_ptr<Transport>(std::move(made));
}

Result<std::unique_ptr<Transport>> make_ucx_transport(const UcxOptions& options, Events& events) {
  return UcxTransport::make(options, events);
}

Status UcxTransport::start() {
  TC_ASSIGN(worker_, UcxWorker::open(options_.tls, options_.allow_put));
  ucp_ = worker_->get();
  event_fd_ = worker_->event_fd();
  by_sockets_alone_ = worker_->by_sockets_alone();
  machine_ = this_machine();
  // A ring's sender stores a frame and then looks at the sleep flag, without a fence between; the receiver that
  // falls asleep makes up for it with a barrier in all processes that registered.
  can_use_rings_ = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  epoll_ = Fd(epoll_create1(EPOLL_CLOEXEC));
  wake_fd_ = Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  epoll_event wake{EPOLLIN, {.u64 = tag_wake}};
  if (!epoll_ || !wake_fd_ || epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_fd_.get(), &wake) != 0)
    return fail(TC_ERR_IO, "preparing to wait for events: {}", system_words(errno));
  TC_CHECK(handle_messages(am_batch, &UcxTransport::on_batch));
  TC_CHECK(handle_messages(am_control, &UcxTransport::on_message<am_control>));
  return handle_messages(am_signal, &UcxTransport::on_message<am_signal>);
}

Status UcxTransport::handle_messages(unsigned id, ucp_am_recv_callback_t receive) {
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG |
                       UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = id;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG;
  handler.cb = receive;
  handler.arg = this;
  if (const auto status = ucp_worker_set_am_recv_handler(ucp_, &handler); status != UCS_OK)
    return fail(TC_ERR_UNSUPPORTED, "receiving active messages: {}", ucx_words(status));
  return {};
}

UcxTransport::~UcxTransport() {
  if (worker_ == nullptr) return;
  drain(farewell_ms);
  noted_.clear();
  for (auto& peer : peers_) {
    if (peer == nullptr || peer->handle() == nullptr) continue;
    peer->orphan();
    UcxConnection* const owner = peer->handle();
    owner->keep(std::move(peer));
  }
  for (auto& peer : peers_) peer.reset();  // one by one: closing an endpoint progresses UCX, which looks at peers_
  endpoints_.clear();
}

// Lets connections that were closed finish. Owners' events are not delivered any more.
void UcxTransport::drain(uint64_t ms) noexcept {
  const auto closing = [](const auto& peer) { return peer != nullptr && peer->stage() == PeerStage::closing; };
  const auto deadline = Deadline::after_ms(ms);
  while (std::ranges::any_of(peers_, closing) && !deadline.passed()) {
    turn_worker();
    look_around(0);
  }
}

Greeting UcxTransport::greeting(const UcxPeer& peer) const {
  return {.ucx_version = UcxWorker::version(),
          .machine = machine_,
          .token = peer.token(),
          .batch_bytes = static_cast<uint32_t>(options_.batch_bytes),
          .window_bytes = static_cast<uint32_t>(options_.window_bytes),
          .listening = listening_,
          .worker_address = worker_->address()};
}

Result<std::shared_ptr<UcxEndpoint>> UcxTransport::endpoint_to(const Bytes& worker_address) {
  std::erase_if(endpoints_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = endpoints_[std::string(as_text(worker_address))];
  if (auto endpoint = known.lock(); endpoint && !endpoint->failed()) return endpoint;
  TC_ASSIGN(auto endpoint, UcxEndpoint::open(worker_->get(), worker_address, failures_));
  known = endpoint;
  return endpoint;
}

Result<UcxPeer*> UcxTransport::add_peer(Fd socket, std::string address, bool accepted) {
  size_t place = 0;
  while (place < peers_.size() && peers_[place] != nullptr) ++place;
  if (place == max_peers) return fail(TC_ERR_LIMIT, "{} peers are connected already", place);
  uint32_t secret = 0;
  if (getrandom(&secret, sizeof secret, 0) != sizeof secret)
    return fail(TC_ERR_INTERNAL, "the system has no random bytes");
  if (place == peers_.size()) {
    table_.make_room(place);
    peers_.emplace_back();
  }
  const uint64_t token = static_cast<uint64_t>(secret) << 16 | place;
  peers_[place] =
      std::make_unique<UcxPeer>(*this, table_.share(place), token, std::move(socket), std::move(address), accepted);
  UcxPeer& peer = *peers_[place];
  epoll_event event{peer.wanted_socket_events(), {.u64 = token}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer.socket().get(), &event) != 0)
    return fail(TC_ERR_IO, "watching the socket to {}: {}", peer.address(), system_words(errno));
  greeting_ = true;
  pulse.urgent = true;
  return &peer;
}

UcxPeer* UcxTransport::find(uint64_t token) const noexcept {
  const size_t place = token & 0xffff;
  if (place >= peers_.size() || peers_[place] == nullptr || peers_[place]->token() != token) return nullptr;
  return peers_[place].get();
}

Result<std::string> UcxTransport::listen(std::string_view address) {
  TC_ASSIGN(Fd socket, listen_socket(address));
  std::string name = local_name(socket);
  epoll_event event{EPOLLIN, {.u64 = tag_listener | listeners_.size()}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, socket.get(), &event) != 0)
    return fail(TC_ERR_IO, "watching the listener at {}: {}", name, system_words(errno));
  listeners_.push_back(std::move(socket));
  if (listening_.empty()) listening_ = name;
  return name;
}

Result<std::unique_ptr<Connection>> UcxTransport::connect(std::string_view address) {
  TC_ASSIGN(Fd socket, connect_socket(address));
  TC_ASSIGN(UcxPeer* const peer, add_peer(std::move(socket), std::string(address), false));
  return std::make_unique<UcxConnection>(*peer);
}

void UcxTransport::accept_peers(const Fd& listener) {
  while (Fd socket = accept_socket(listener)) {
    const auto strangers =
        std::ranges::count_if(peers_, [](const auto& p) { return p && p->accepted() && p->greets(); });
    if (strangers >= max_strangers) continue;  // dropped; who means it tries again
    std::string name = remote_name(socket);
    (void)add_peer(std::move(socket), std::move(name), true);
  }
}

void UcxTransport::watch_socket(UcxPeer& peer) noexcept {
  epoll_event event{peer.wanted_socket_events(), {.u64 = peer.token()}};
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.socket().get(), &event);
}

void UcxTransport::forget_socket(UcxPeer& peer) noexcept {
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.socket().get(), nullptr);
}

template <unsigned id>
ucs_status_t UcxTransport::on_message(void* self, const void* header, size_t header_size, void* data, size_t size,
                                      const ucp_am_recv_param_t* param) noexcept {
  static_cast<UcxTransport*>(self)->take_message(id, {static_cast<const std::byte*>(header), header_size},
                                                 {static_cast<const std::byte*>(data), size}, *param);
  return UCS_OK;
}

TC_ON_HOT_PAGE ucs_status_t UcxTransport::on_batch(void* self, const void* header, size_t header_size, void* data,
                                                   size_t size, const ucp_am_recv_param_t* param) noexcept {
  if (header_size == 0 && static_cast<UcxTransport*>(self)->runs_alone(data, size, *param)) [[likely]]
    return UCS_OK;
  return on_message<am_batch>(self, header, header_size, data, size, param);
}

// Runs the call that the message is, where it comes alone and in order. False: take_message() sees to it.
[[gnu::always_inline]] inline bool UcxTransport::runs_alone(const void* data, size_t size,
                                                            const ucp_am_recv_param_t& param) noexcept {
  uint64_t word = 0;
  if (size < sizeof word || (param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return false;
  std::memcpy(&word, data, sizeof word);
  const auto index = static_cast<uint32_t>(word & 0xffff);
  if (!table_.has(index)) return false;
  auto& peer = table_[index].in;
  if (peer.token != (word & 0xffff'ffff'ffff) || peer.stage != PeerStage::up || peer.is_lost ||
      peer.next_received != word >> 48 || peer.connection == nullptr)
    return false;
  try {
    const ByteView batch(static_cast<const std::byte*>(data) + sizeof word, size - sizeof word);
    if (lone_call_.run(batch, peer.bypass, *peer.connection, index, pulse, events_)) [[likely]] {
      ++peer.next_received;
      peer.way = Way::am;
      ++pulse.arrivals;
      return true;
    }
  } catch (const std::exception& problem) {
    peers_[index]->lose_for(problem);
    return true;
  }
  return false;
}

// Our header stands in front of the data, or in UCX's header.
void UcxTransport::take_message(unsigned id, ByteView header, ByteView data,
                                const ucp_am_recv_param_t& param) noexcept {
  uint64_t word = 0;
  const bool in_front = header.empty();
  if (in_front ? data.size() < sizeof word : header.size() != sizeof word) return;
  const bool is_rendezvous = (param.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0;
  if (in_front && is_rendezvous) return;  // nothing of ours: its data is not here
  std::memcpy(&word, in_front ? data.data() : header.data(), sizeof word);
  if (in_front) data = data.subspan(sizeof word);
  UcxPeer* const peer = find(word & 0xffff'ffff'ffff);
  if (peer == nullptr) return;  // for a connection that ended, or for nobody
  if (is_rendezvous)
    return peer->lose(Error{TC_ERR_TOO_LARGE, fmt::format("{} announced a message of {} bytes when it may only send "
                                                          "eagerly",
                                                          peer->address(), data.size())});
  peer->on_message(id, static_cast<uint16_t>(word >> 48), data);
}

TC_ON_HOT_PAGE bool UcxTransport::put_alone(uint32_t index, uint64_t header,
                                            std::initializer_list<ByteView> body) noexcept {
  auto& peer = table_[index].out;
  OutBuffer* const lone = has_failures() ? nullptr : peer.bypass.lay_out(flush_list_, header, body);
  if (lone == nullptr) [[unlikely]]
    return false;
  const size_t size = wire::header_bytes + static_cast<size_t>(header >> 32);
  const auto request = UcxOut::send_batch(peer, *lone, lone->base(), size);
  if (request != nullptr) [[unlikely]]
    peers_[index]->keep_lone(*lone, request);
  return true;
}

void UcxTransport::note(UcxPeer& peer) {
  if (peer.noted_) return;
  peer.noted_ = true;
  pulse.urgent = pulse.due = true;
  noted_.push_back(&peer);
}

[[gnu::hot]] unsigned UcxTransport::turn_worker() noexcept {
  return handing_over([this] { return ucp_worker_progress(ucp_); });
}

void UcxTransport::see_to_failures() noexcept {
  failures_seen_ = failures_;
  for (const auto& peer : peers_)
    if (peer != nullptr) peer->check_endpoint();
}

[[gnu::hot]] unsigned UcxTransport::progress() noexcept {
  unsigned done = flush_list_.empty() ? 0 : flush_list_.flush_all();
  if (++calls_ % calls_per_turn == 0 || busy_) done += turn_worker();
  if (greeting_)
    look_around(greeting_gap_ns);
  else if (calls_ % calls_per_look == 0)
    look_around(look_gap_ns);
  if (!noted_.empty()) done += deliver_all();
  if (!flush_list_.empty()) flush_list_.flush_all();
  pulse.due = !noted_.empty() || !flush_list_.empty();
  pulse.urgent = busy_ || greeting_ || pulse.due;
  return done;
}

void UcxTransport::look_around(uint64_t min_gap_ns) noexcept {
  const uint64_t now = now_ns();
  if (now - last_look_ < min_gap_ns) return;
  last_look_ = now;
  epoll_event events[32];
  const int count = epoll_wait(epoll_.get(), events, 32, 0);
  for (int i = 0; i < count; ++i) {
    const uint64_t tag = events[i].data.u64;
    if (tag == tag_wake) continue;  // it is sleep()'s to take back
    if ((tag & tag_listener) == tag_listener)
      accept_peers(listeners_[tag & ~tag_listener]);
    else if (UcxPeer* const peer = find(tag))
      peer->on_socket();
  }
  // With more nodes than cores the peers are cold, and mostly there is nothing to see.
  if (count <= 0 && !pulse.direct && !greeting_ && !peers_need_watching_) return;
  for (size_t i = 0; i < peers_.size(); ++i)
    if (peers_[i] != nullptr) peers_[i]->check_time(now);
  review();
}

// Events are delivered here and nowhere else. Their receivers may destroy any connection: that only notes the
// peer again, and peers go when all is delivered.
unsigned UcxTransport::deliver_all() noexcept {
  unsigned done = 0;
  for (size_t i = 0; i < noted_.size(); ++i) {
    noted_[i]->noted_ = false;
    done += noted_[i]->deliver(events_);
  }
  std::vector<UcxPeer*> noted;
  noted.swap(noted_);
  std::ranges::sort(noted);
  noted.erase(std::ranges::unique(noted).begin(), noted.end());
  for (UcxPeer* const peer : noted)
    if (peer->settle()) {
      std::erase(noted_, peer);
      peers_[peer->token() & 0xffff].reset();
    }
  review();
  return done;
}

void UcxTransport::review() noexcept {
  const bool direct = pulse.direct;
  busy_ = greeting_ = pulse.direct = false;
  for (const auto& peer : peers_) {
    if (peer == nullptr) continue;
    pulse.direct |= peer->writes_to_us();
    busy_ |= peer->busy();
    greeting_ |= peer->greets();
  }
  if (pulse.direct != direct) came.note_anybody();  // what lies in the memory that was written to
}

}  // namespace tc::transport
