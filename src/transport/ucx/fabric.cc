// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/fabric.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/random.h"

namespace tc::transport {

namespace {

constexpr size_t max_channels = 65536;         // a token has 16 bits for the index
constexpr uint64_t settling_ns = 200'000'000;  // for an endpoint to connect before it is closed
// UCX gives no event when a message in flight can go on: progress after a short time, and after ever longer ones while
// nothing changes.
constexpr uint64_t shortest_recheck_ns = 20'000, longest_recheck_ns = 5'000'000;

Status check_options(const FabricOptions& options) {
  for (const size_t window : {options.window_bytes, options.ring_bytes})
    if (window < min_window_bytes || window > max_window_bytes)
      return fail(TC_ERR_INVALID, "a window of {} bytes: {} to {} are possible", window, min_window_bytes,
                  max_window_bytes);
  return {};
}

// Has the peer ended its side of the socket? What it still sends there is the end of its session.
bool has_ended(const Fd& socket) noexcept {
  char discarded[64];
  const auto got = ::recv(socket.get(), discarded, sizeof discarded, MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

}  // namespace

Result<std::unique_ptr<UcxFabric>> UcxFabric::create(const FabricOptions& options, Hub& hub) {
  TC_CHECK(check_options(options));
  std::unique_ptr<UcxFabric> made(new UcxFabric(options, hub));
  TC_CHECK(made->start());
  return made;
}

Status UcxFabric::start() {
  TC_ASSIGN(worker_, UcxWorker::open(options_.tls, options_.devices, options_.puts));
  const auto handle = [this](unsigned id, ucp_am_recv_callback_t receive) -> Status {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
    handler.id = id;
    handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
    handler.cb = receive;
    handler.arg = this;
    if (const auto status = ucp_worker_set_am_recv_handler(worker_->get(), &handler); status != UCS_OK)
      return fail(TC_ERR_UNSUPPORTED, "receiving Active Messages: {}", ucx_message(status));
    return {};
  };
  TC_CHECK(handle(am_bytes, &UcxFabric::on_message<am_bytes>));
  return handle(am_signal, &UcxFabric::on_message<am_signal>);
}

// All connections are closed by now, and their last bytes were sent (Network::finish()).
UcxFabric::~UcxFabric() {
  lingering_.clear();
  for (const auto deadline = Deadline::after_ms(settling_ns / 1'000'000); !retired_.empty() && !deadline.passed();)
    progress();
  retired_.clear();
  endpoints_.clear();
}

Result<std::unique_ptr<SocketConnection>> UcxFabric::connect(Fd socket, std::string address,
                                                             std::vector<SocketAddress> others, ByteView hello) {
  return UcxConnection::connect(*this, std::move(socket), std::move(address), std::move(others), hello);
}

Result<std::unique_ptr<SocketConnection>> UcxFabric::accept(SocketStream& stream, const Origin& origin,
                                                            const Greeting& greeting) {
  return UcxConnection::accept(*this, stream, origin, greeting);
}

Result<uint64_t> UcxFabric::add(UcxChannel& channel) {
  auto free = std::ranges::find(channels_, nullptr);
  if (free == channels_.end() && channels_.size() == max_channels)
    return fail(TC_ERR_LIMIT, "{} peers are connected already", channels_.size());
  const auto secret = static_cast<uint32_t>(random_number());
  if (free == channels_.end()) {
    channels_.push_back(nullptr);
    ready_.reserve(2 * channels_.size());  // those being delivered may be scheduled again: this never allocates
    free = channels_.end() - 1;
  }
  *free = &channel;
  return static_cast<uint64_t>(secret) << 16 | static_cast<uint64_t>(free - channels_.begin());
}

void UcxFabric::remove(UcxChannel& channel) noexcept {
  std::ranges::replace(channels_, &channel, nullptr);
  std::erase(ready_, &channel);
  if (!retired_.empty()) schedule_check();
}

// A peer that we connect to has an endpoint to us before we have one to it. UCX may pair that with an earlier one of ours.
bool UcxFabric::is_connecting() const noexcept {
  return std::ranges::any_of(channels_, [](const UcxChannel* channel) {
    return channel != nullptr && channel->owner != nullptr && !channel->is_open();
  });
}

UcxChannel* UcxFabric::find(uint64_t token) const noexcept {
  const size_t place = token & 0xffff;
  if (place >= channels_.size() || channels_[place] == nullptr || channels_[place]->token() != token) return nullptr;
  return channels_[place];
}

Result<std::shared_ptr<UcxEndpoint>> UcxFabric::endpoint_to(const Bytes& worker_address) {
  std::erase_if(endpoints_, [](const auto& entry) { return entry.second.expired(); });
  if (!retired_.empty()) schedule_check();
  TC_ASSIGN(auto endpoint, UcxEndpoint::open(worker_->get(), worker_address, failures_));
  auto& known = endpoints_[std::string(as_text(worker_address))];
  auto all = known.lock();
  if (all == nullptr) known = all = std::make_shared<Endpoints>();
  auto* const added = all->emplace_back(std::move(endpoint)).get();
  return std::shared_ptr<UcxEndpoint>(std::move(all), added);
}

void UcxFabric::schedule(UcxChannel& channel) noexcept {
  if (!std::exchange(channel.is_ready, true)) ready_.push_back(&channel);
}

void UcxFabric::linger(SocketStream stream, std::unique_ptr<UcxChannel> channel, Bytes unsent, std::string peer) {
  channel->owner = nullptr;
  auto& one = lingering_.emplace_back(std::move(stream), std::move(channel), std::move(unsent), std::move(peer));
  one.time = ClosingTime(now_ns(), one.left());
  send_remaining();
  schedule_check();
}

void UcxFabric::retire(std::shared_ptr<UcxEndpoint> endpoint) noexcept {
  if (endpoint == nullptr || (endpoint->is_settled() && !is_connecting())) return;
  try {
    retired_.emplace_back(std::move(endpoint), now_ns() + settling_ns);
  } catch (const std::exception&) {  // no memory: the endpoint is closed at once
  }
  schedule_check();
}

// Our messages are always sent eagerly. Any other was not sent by a node, and its data would not be here.
template <unsigned Id>
ucs_status_t UcxFabric::on_message(void* self, const void*, size_t header_size, void* data, size_t size,
                                   const ucp_am_recv_param_t* param) noexcept {
  uint64_t prefix = 0;
  if (header_size != 0 || size < sizeof prefix || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  std::memcpy(&prefix, data, sizeof prefix);
  if (auto* const channel = static_cast<UcxFabric*>(self)->find(prefix & 0xffff'ffff'ffff))
    if (channel->on_message(Id, static_cast<uint16_t>(prefix >> 48),
                            {static_cast<const std::byte*>(data) + sizeof prefix, size - sizeof prefix}, data))
      return UCS_INPROGRESS;
  return UCS_OK;
}

unsigned UcxFabric::progress() noexcept {
  unsigned done = ucp_worker_progress(worker_->get());
  if (options_.puts) find_puts();
  done += static_cast<unsigned>(ready_.size());
  if (!ready_.empty()) deliver_ready();
  if (!lingering_.empty()) send_remaining();
  if (next_check_ns_ != 0 || failures_ != failures_seen_) check(now_ns());
  return done;
}

void UcxFabric::find_puts() noexcept {
  for (auto* const channel : channels_)
    if (channel != nullptr && channel->is_open() && channel->is_readable() &&
        (channel->owner == nullptr || !channel->owner->is_paused()))
      schedule(*channel);
}

// Receivers may schedule other channels, and the same one again: those wait for the next call.
void UcxFabric::deliver_ready() noexcept {
  for (size_t i = 0, count = ready_.size(); i < count && i < ready_.size(); ++i) {
    auto& channel = *ready_[i];
    channel.is_ready = false;
    ready_[i] = nullptr;
    if (channel.owner != nullptr)
      channel.owner->deliver();
    else
      channel.discard_arrived();
  }
  std::erase(ready_, nullptr);
}

void UcxFabric::send_remaining() noexcept {
  for (auto& one : lingering_) {
    if (one.has_sent_all) continue;
    try {
      while (one.sent < one.unsent.size()) {
        const auto sent = one.channel->send(ByteView(one.unsent).subspan(one.sent));
        one.has_failed = !sent;
        if (!sent || *sent == 0) break;
        one.sent += *sent;
      }
      if (one.sent == one.unsent.size()) {
        const uint64_t closing_record = one.channel->sent();
        (void)one.stream.send_at_once(std::as_bytes(std::span(&closing_record, 1)));
        one.has_sent_all = true;
      }
    } catch (const std::exception&) {  // no memory: the next call tries again
    }
  }
}

// The peer has ended its side when it has read everything.
bool UcxFabric::is_over(Lingering& one, uint64_t now) noexcept {
  if (has_ended(one.stream.socket())) return true;
  if (!one.has_failed && !one.time.is_over(now, [&] { return one.left(); })) return false;
  if (const size_t lost = one.left(); lost != 0) {
    try {
      hub_.events.on_warning(lost_bytes_warning(lost, one.peer));
    } catch (const std::exception&) {  // no memory for the sentence
    }
  }
  return true;
}

void UcxFabric::check(uint64_t now) noexcept {
  failures_seen_ = failures_;
  next_check_ns_ = 0;
  const auto due = [this](uint64_t time) {
    if (time != 0 && (next_check_ns_ == 0 || time < next_check_ns_)) next_check_ns_ = time;
  };
  for (auto* const channel : channels_)
    if (channel != nullptr && channel->owner != nullptr) due(channel->owner->check(now));
  std::erase_if(lingering_, [&](Lingering& one) { return is_over(one, now); });
  for (const auto& one : lingering_) due(one.time.end_ns());
  if (retired_.empty() || is_connecting()) return;  // the next open() or remove() has it checked
  std::erase_if(retired_, [&](const auto& one) { return now >= one.second || one.first->is_settled(); });
  if (!retired_.empty()) due(retired_.front().second);
}

bool UcxFabric::arm() noexcept {
  if (options_.puts) {
    find_puts();
    // Not on a paused connection: what lies unread there would make its peer answer with a wake at once, again and again.
    for (auto* const channel : channels_)
      if (channel != nullptr && channel->owner != nullptr && !channel->owner->is_paused()) channel->announce_sleep();
  }
  if (!ready_.empty()) return false;
  if (ucp_worker_arm(worker_->get()) == UCS_OK) return true;
  (void)progress();
  return false;
}

uint64_t UcxFabric::next_time() noexcept {
  if (lingering_.empty() && messages_in_flight == 0) return next_check_ns_;
  const bool moves = std::exchange(seen_in_flight_, messages_in_flight) != messages_in_flight;
  recheck_ns_ = moves ? shortest_recheck_ns : std::min(2 * recheck_ns_, longest_recheck_ns);
  return now_ns() + recheck_ns_;
}

}  // namespace tc::transport
