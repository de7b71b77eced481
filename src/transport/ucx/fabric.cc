// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/fabric.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tc::transport {

namespace {

constexpr size_t max_connections = 65536;       // a token has 16 bits for the place
constexpr uint64_t closing_ns = 1'000'000'000;  // a peer that does not end its side
constexpr uint64_t sending_nap_ns = 5'000'000;  // UCX does not say when a full socket takes bytes again
constexpr uint32_t calls_between_checks = 64;

Status check_options(const FabricOptions& options) {
  if (options.batch_bytes < 256 || options.batch_bytes > 1u << 20 || options.window_bytes < 4 * options.batch_bytes ||
      options.window_bytes > 1u << 30)
    return fail(TC_ERR_INVALID,
                "messages of {} bytes in a window of {}: 256 to 1 MiB, and four times that, are possible",
                options.batch_bytes, options.window_bytes);
  if (!ring_size_is_valid(options.ring_bytes))
    return fail(TC_ERR_INVALID, "a ring of {} bytes: it wants to be a power of two from {} to {}", options.ring_bytes,
                min_ring_bytes, max_ring_bytes);
  return {};
}

// Has the peer ended its side of the socket?
bool has_ended(const Fd& socket) noexcept {
  char byte;
  const auto got = ::recv(socket.get(), &byte, 1, MSG_DONTWAIT);
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
    handler.flags = UCP_AM_FLAG_WHOLE_MSG;
    handler.cb = receive;
    handler.arg = this;
    if (const auto status = ucp_worker_set_am_recv_handler(worker_->get(), &handler); status != UCS_OK)
      return fail(TC_ERR_UNSUPPORTED, "receiving Active Messages: {}", ucx_words(status));
    return {};
  };
  TC_CHECK(handle(am_batch, &UcxFabric::on_batch));
  return handle(am_signal, &UcxFabric::on_signal);
}

// Connections are gone by now; what they still had to say leaves.
UcxFabric::~UcxFabric() {
  for (const auto deadline = Deadline::after_ms(closing_ns / 1'000'000); !lingering_.empty() && !deadline.passed();)
    progress();
  lingering_.clear();
  endpoints_.clear();
}

Result<std::unique_ptr<SocketConnection>> UcxFabric::connect(Fd socket, std::string address,
                                                             std::vector<SocketAddress> others, ByteView hello) {
  return UcxConnection::connect(*this, std::move(socket), std::move(address), std::move(others), hello);
}

Result<std::unique_ptr<SocketConnection>> UcxFabric::accept(Fd& socket, const Origin& origin,
                                                            const Greeting& greeting) {
  return UcxConnection::accept(*this, socket, origin, greeting);
}

Result<uint64_t> UcxFabric::enlist(UcxConnection& connection) {
  auto free = std::ranges::find(connections_, nullptr);
  if (free == connections_.end() && connections_.size() == max_connections)
    return fail(TC_ERR_LIMIT, "{} peers are connected already", connections_.size());
  uint32_t secret = 0;
  if (getrandom(&secret, sizeof secret, 0) != sizeof secret)
    return fail(TC_ERR_INTERNAL, "the system has no random bytes");
  if (free == connections_.end()) {
    connections_.push_back(nullptr);
    noted_.reserve(connections_.size());  // so that noting never allocates
    free = connections_.end() - 1;
  }
  *free = &connection;
  return static_cast<uint64_t>(secret) << 16 | static_cast<uint64_t>(free - connections_.begin());
}

void UcxFabric::forget(UcxConnection& connection) noexcept {
  std::ranges::replace(connections_, &connection, nullptr);
  std::erase(noted_, &connection);
}

UcxConnection* UcxFabric::find(uint64_t token) const noexcept {
  const size_t place = token & 0xffff;
  if (place >= connections_.size() || connections_[place] == nullptr || connections_[place]->token() != token)
    return nullptr;
  return connections_[place];
}

Result<std::shared_ptr<UcxEndpoint>> UcxFabric::endpoint_to(const Bytes& worker_address) {
  std::erase_if(endpoints_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = endpoints_[std::string(as_text(worker_address))];
  if (auto endpoint = known.lock(); endpoint && !endpoint->failed()) return endpoint;
  TC_ASSIGN(auto endpoint, UcxEndpoint::open(worker_->get(), worker_address, failures_));
  known = endpoint;
  return endpoint;
}

void UcxFabric::note(UcxConnection& connection) noexcept {
  if (std::exchange(connection.is_noted, true)) return;
  noted_.push_back(&connection);
}

void UcxFabric::linger(Fd socket, std::shared_ptr<UcxEndpoint> endpoint) noexcept {
  try {
    lingering_.push_back({std::move(socket), std::move(endpoint), now_ns() + closing_ns});
  } catch (const std::exception&) {  // no memory: it ends at once
  }
  note_time();
}

ucs_status_t UcxFabric::on_batch(void* self, const void*, size_t header_size, void* data, size_t size,
                                 const ucp_am_recv_param_t* param) noexcept {
  // The mark stands in front of the frames. Messages are sent eagerly: the data of a rendezvous would not be here.
  uint64_t mark = 0;
  if (header_size != 0 || size < sizeof mark || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  std::memcpy(&mark, data, sizeof mark);
  if (auto* const connection = static_cast<UcxFabric*>(self)->find(mark & 0xffff'ffff'ffff))
    connection->on_message(am_batch, static_cast<uint16_t>(mark >> 48),
                           {static_cast<const std::byte*>(data) + sizeof mark, size - sizeof mark});
  return UCS_OK;
}

ucs_status_t UcxFabric::on_signal(void* self, const void* header, size_t header_size, void* data, size_t size,
                                  const ucp_am_recv_param_t* param) noexcept {
  uint64_t mark = 0;
  if (header_size != sizeof mark || (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;
  std::memcpy(&mark, header, sizeof mark);
  if (auto* const connection = static_cast<UcxFabric*>(self)->find(mark & 0xffff'ffff'ffff))
    connection->on_message(am_signal, static_cast<uint16_t>(mark >> 48), {static_cast<const std::byte*>(data), size});
  return UCS_OK;
}

unsigned UcxFabric::progress() noexcept {
  const unsigned done = ucp_worker_progress(worker_->get());
  if (!noted_.empty()) deliver_noted();
  const bool is_due = next_check_ns_ != 0 || failures_ != failures_seen_;
  if (is_due || (options_.puts && ++calls_ % calls_between_checks == 0)) check(now_ns());
  return done;
}

// What they do may note others, and themselves again.
void UcxFabric::deliver_noted() noexcept {
  for (size_t i = 0; i < noted_.size(); ++i) {
    auto& connection = *noted_[i];
    connection.is_noted = false;
    connection.deliver();
  }
  noted_.clear();
}

void UcxFabric::check(uint64_t now) noexcept {
  failures_seen_ = failures_;
  next_check_ns_ = 0;
  const auto due = [this](uint64_t time) {
    if (time != 0 && (next_check_ns_ == 0 || time < next_check_ns_)) next_check_ns_ = time;
  };
  for (auto* const connection : connections_)
    if (connection != nullptr) due(connection->check(now));
  std::erase_if(lingering_, [&](const Lingering& one) { return now >= one.give_up_at_ns || has_ended(one.socket); });
  if (!lingering_.empty()) due(lingering_.front().give_up_at_ns);
}

bool UcxFabric::arm() noexcept {
  if (!noted_.empty()) return false;
  if (ucp_worker_arm(worker_->get()) == UCS_OK) return true;
  (void)progress();
  return false;
}

uint64_t UcxFabric::next_time() noexcept {
  if (!lingering_.empty()) return now_ns() + sending_nap_ns;
  const bool is_sending = std::ranges::any_of(
      connections_, [](auto* connection) { return connection != nullptr && connection->has_sends_on_the_way(); });
  return is_sending ? now_ns() + sending_nap_ns : next_check_ns_;
}

}  // namespace tc::transport
