// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/connection.h"

#include <cstring>

#include "transport/ucx/fabric.h"

namespace tc::transport {

namespace {

// How long to wait for bytes from UCX after the socket has ended: the end can overtake them.
constexpr uint64_t final_bytes_ns = 3'000'000;
constexpr uint64_t closing_ns = 1'000'000'000;

}  // namespace

UcxConnection::UcxConnection(UcxFabric& fabric, Fd socket, std::string address, std::vector<SocketAddress> others)
    : ByteConnection(fabric.hub(), std::move(socket), std::move(address), std::move(others)), fabric_(fabric) {}

UcxConnection::UcxConnection(UcxFabric& fabric, const Origin& origin)
    : ByteConnection(fabric.hub(), SocketStream(), origin), fabric_(fabric) {}

std::string_view UcxConnection::transport() const noexcept { return fabric_.options().puts ? "ucx-put" : "ucx"; }

Result<std::unique_ptr<UcxConnection>> UcxConnection::connect(UcxFabric& fabric, Fd socket, std::string address,
                                                              std::vector<SocketAddress> others, ByteView hello) {
  std::unique_ptr<UcxConnection> made(
      new UcxConnection(fabric, std::move(socket), std::move(address), std::move(others)));
  TC_ASSIGN(made->channel_, UcxChannel::create(fabric, *made));
  TC_CHECK(made->start_greeting(hello));
  return made;
}

Result<std::unique_ptr<UcxConnection>> UcxConnection::accept(UcxFabric& fabric, SocketStream& stream,
                                                             const Origin& origin, const Greeting& greeting) {
  std::unique_ptr<UcxConnection> made(new UcxConnection(fabric, origin));
  if (greeting.transport != made->transport())
    return fail(TC_ERR_UNSUPPORTED, "the peer wants the transport '{}' when this node has '{}'", greeting.transport,
                made->transport());
  TC_CHECK(made->take_details(greeting.details));
  TC_ASSIGN(made->channel_, UcxChannel::create(fabric, *made));
  made->stream_ = std::move(stream);
  TC_CHECK(made->start_accepted());
  return made;
}

// Two versions of UCX can talk over TCP, and over no other transport.
Status UcxConnection::take_details(ByteView bytes) {
  TC_ASSIGN(theirs_, decode_details(bytes));
  const bool is_same = theirs_.version == UcxWorker::version();
  if (!is_same && (fabric_.options().puts || !theirs_.tcp_alone || !fabric_.worker().tcp_alone()))
    return fail(
        TC_ERR_VERSION,
        "one side runs UCX {} when the other runs {}: between them only Active Messages over TCP work (ucx-tls, or "
        "UCX_TLS: tcp, on both sides)",
        theirs_.version, UcxWorker::version());
  return {};
}

Status UcxConnection::open_streams() {
  TC_CHECK(channel_->open(theirs_));
  open_streams_on(*channel_);
  watch(EPOLLIN | EPOLLRDHUP);
  fabric_.schedule(*channel_);  // bytes may have come before our answer was read
  return {};
}

// The channel must live until the peer has the last bytes. The peer then reads our BYE and closes its socket.
void UcxConnection::hand_over(Bytes unsent) {
  if (!channel_->is_open()) return ByteConnection::hand_over(std::move(unsent));
  hub_.poller.remove(stream_.socket());
  fabric_.linger(std::move(stream_), std::move(channel_), std::move(unsent), address_);
}

// After the greetings the peer sends nothing on the socket but its closing record.
void UcxConnection::on_socket(uint32_t) {
  std::byte bytes[sizeof(uint64_t) + 1];
  const auto got = stream_.receive(bytes);
  if (got && *got == 0) return;
  if (got) closing_record_.insert(closing_record_.end(), bytes, bytes + *got);
  if (closing_record_.size() > sizeof(uint64_t))
    return lose(Error{TC_ERR_MALFORMED, "it sent more than a closing record behind its greeting"});
  if (got && closing_record_.size() < sizeof(uint64_t)) return;
  watch(0);
  wait_for_final_bytes(closing_record_.empty() ? final_bytes_ns : closing_ns);
  fabric_.schedule(*channel_);
}

void UcxConnection::wait_for_final_bytes(uint64_t ns) noexcept {
  final_bytes_deadline_ns_ = now_ns() + ns;
  fabric_.schedule_check();
}

// Only the end of the socket tells that nothing more comes, and the peer may not end it.
void UcxConnection::end_receiving() noexcept {
  if (final_bytes_deadline_ns_ == 0) wait_for_final_bytes(final_bytes_ns);
}

// Has the peer sent its closing record, and are all bytes here that it counts?
bool UcxConnection::has_ended() const noexcept {
  uint64_t sent = 0;
  if (closing_record_.size() != sizeof sent) return false;
  std::memcpy(&sent, closing_record_.data(), sizeof sent);
  return channel_->taken() == sent;
}

void UcxConnection::deliver() noexcept {
  if (is_open() && awaits_room_ && channel_->has_room()) {
    awaits_room_ = false;
    on_channel_room();
  }
  while (is_open() && channel_->is_readable() && receive_or_lose()) {
  }
  if (is_open() && has_ended()) return lose_at_end(Error{TC_ERR_DISCONNECTED, "it closed the connection"});
  if (is_open() && channel_->is_readable() && !is_paused())
    fabric_.schedule(*channel_);  // the owner has not read everything
}

void UcxConnection::set_paused(bool paused) noexcept {
  ByteConnection::set_paused(paused);
  if (!paused && is_open()) fabric_.schedule(*channel_);
}

uint64_t UcxConnection::check(uint64_t now) noexcept {
  if (!is_open()) return 0;
  if (final_bytes_deadline_ns_ != 0 && now >= final_bytes_deadline_ns_) {
    if (!channel_->has_arrived() || is_paused()) {
      lose_at_end(Error{TC_ERR_DISCONNECTED, "it closed its socket without disconnecting first"});
      return 0;
    }
    final_bytes_deadline_ns_ = now + final_bytes_ns;  // the owner has not read everything
  }
  if (channel_->is_readable()) fabric_.schedule(*channel_);  // its endpoint has failed
  return final_bytes_deadline_ns_;
}

}  // namespace tc::transport
