// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx_peer.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/ucx_transport.h"

namespace tc::transport {

namespace {

constexpr size_t max_control_bytes = 64 * 1024;
// What may wait for a peer that does not take it (stopped, slow): stops it from eating our memory.
constexpr size_t max_messages_out = 4096;
constexpr size_t max_message_bytes_out = 16 * 1024 * 1024;
constexpr uint64_t greeting_ns = 10'000'000'000;  // a stranger that connects and says nothing is dropped
constexpr uint64_t closing_ns = 1'000'000'000;    // a peer that does not confirm our goodbye is dropped
// The socket's end can overtake messages on UCX's way: look for those first.
constexpr uint64_t last_words_ns = 3'000'000;

}  // namespace

// A control message or signal on its way. The header stands in front of the data.
struct UcxPeer::Message {
  UcxPeer* peer;  // null once the peer is gone
  uint64_t header;
  Bytes data;
};

UcxPeer::UcxPeer(UcxTransport& transport, std::shared_ptr<PeerEntry> entry, uint64_t token, Fd socket,
                 std::string address, bool accepted)
    : transport_(transport),
      entry_(std::move(entry)),
      in_(transport.options().batch_bytes, transport.options().window_bytes, entry_->in.bypass),
      out_(transport.flush_list(), *this, entry_->out),
      accepted_(accepted),
      wants_write_(!accepted),
      socket_(std::move(socket)),
      origin_(std::move(address)),
      address_(origin_) {
  entry_->in.token = token;
  set_stage(accepted ? Stage::greeting : Stage::connecting);
  set_timer(greeting_ns);
}

void UcxPeer::set_timer(uint64_t from_now_ns) noexcept {
  timer_ = now_ns() + from_now_ns;
  transport_.watch_peers();
}

UcxPeer::~UcxPeer() {
  out_.shut_ring();
  let_go();
  for (Message* message : messages_) message->peer = nullptr;
  // Other connections to the same worker keep its endpoint open, and late puts may still come on it.
  if (const auto endpoint = last_endpoint_.lock(); endpoint && way_in() == Way::put)
    endpoint->keep(std::move(ring_memory_));
  *entry_ = {};
}

uint32_t UcxPeer::wanted_socket_events() const noexcept {
  return EPOLLIN | EPOLLRDHUP | (wants_write_ ? EPOLLOUT : 0u);
}

// ---- the socket ----

void UcxPeer::on_socket() noexcept {
  if (!socket_ || is_lost() || stage() == Stage::over) return;
  try {
    if (stage() == Stage::connecting) finish_connecting();
    if (wants_write_ && stage() != Stage::connecting) send_greeting();
    if (stage() != Stage::connecting && !is_lost()) read_socket();
  } catch (const std::exception& problem) {
    lose_for(problem);
  }
}

void UcxPeer::finish_connecting() {
  pollfd state{socket_.get(), POLLOUT, 0};
  if (poll(&state, 1, 0) <= 0) return;
  if (const int error = socket_error(socket_); error != 0)
    return lose(Error{TC_ERR_DISCONNECTED, fmt::format("connecting to {}: {}", address_, system_words(error))});
  set_stage(Stage::greeting);
  greeting_out_ = encode_greeting(transport_.greeting(*this));
}

void UcxPeer::send_greeting() {
  const auto sent = ::send(socket_.get(), greeting_out_.data(), greeting_out_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && errno != EAGAIN && errno != EINTR)
    return lose(Error{TC_ERR_DISCONNECTED, fmt::format("greeting {}: {}", address_, system_words(errno))});
  if (sent > 0) greeting_out_.erase(greeting_out_.begin(), greeting_out_.begin() + sent);
  if (const bool more = !greeting_out_.empty(); more != wants_write_) {
    wants_write_ = more;
    transport_.watch_socket(*this);
  }
}

void UcxPeer::read_socket() {
  std::byte buffer[4096];
  for (;;) {
    const auto got = ::recv(socket_.get(), buffer, sizeof buffer, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      transport_.forget_socket(*this);
      if (stage() == Stage::up) {
        set_timer(last_words_ns);
        peer_died_ = true;
      } else if (stage() == Stage::closing) {
        set_stage(Stage::over);
        transport_.note(*this);
      } else {
        lose(Error{TC_ERR_DISCONNECTED, fmt::format("{} ended the connection before it greeted", address_)});
      }
      return;
    }
    if (stage() != Stage::greeting)
      return lose(Error{TC_ERR_MALFORMED, fmt::format("{} sent {} bytes behind its greeting", address_, got)});
    greeting_in_.insert(greeting_in_.end(), buffer, buffer + got);
    if (auto read = read_greeting(); !read) return lose(std::move(read).error());
    if (stage() == Stage::up) return;
  }
}

Status UcxPeer::read_greeting() {
  TC_ASSIGN(auto greeting, decode_greeting(greeting_in_));
  if (!greeting) return {};
  return meet(std::move(*greeting));
}

// Both sides know each other from here on; the one that accepted answers first, so its endpoint is there when the
// other side's first message comes.
Status UcxPeer::meet(Greeting greeting) {
  peer_ = std::move(greeting);
  greeting_in_ = {};
  TC_ASSIGN(endpoint_, transport_.endpoint_to(peer_.worker_address));
  out_.open_wire(endpoint_->get(), peer_.token);
  last_endpoint_ = endpoint_;
  set_stage(Stage::up);
  timer_ = 0;
  if (accepted_) {
    if (!peer_.listening.empty()) address_ = peer_.listening;
    greeting_out_ = encode_greeting(transport_.greeting(*this));
    wants_write_ = true;
    send_greeting();
    announce_ = true;
  }
  transport_.note(*this);
  while (!controls_out_.empty() && !is_lost()) {
    TC_CHECK(send_message(am_control, controls_out_.front()));
    controls_out_.pop_front();
  }
  return {};
}

// ---- sending ----

Status UcxPeer::send_control(ByteView frame) {
  if (is_lost() || stage() >= Stage::closing)
    return fail(TC_ERR_DISCONNECTED, "the connection to {} is gone", address_);
  if (frame.size() < wire::header_bytes || frame.size() > max_control_bytes)
    return fail(TC_ERR_TOO_LARGE, "a control frame is {} bytes when {} to {} are allowed", frame.size(),
                wire::header_bytes, max_control_bytes);
  if (const size_t waiting = messages_.size() + controls_out_.size();
      waiting >= max_messages_out || message_bytes_out_ + frame.size() > max_message_bytes_out)
    return fail(TC_ERR_LIMIT, "{} control frames to {} wait to be sent", waiting, address_);
  if (stage() == Stage::up) return send_message(am_control, frame);
  controls_out_.emplace_back(frame.begin(), frame.end());
  return {};
}

void UcxPeer::send_signal(Signal signal, uint64_t value) noexcept {
  if (endpoint_ == nullptr || is_lost()) return;
  Bytes data;
  Writer(data).u8(static_cast<uint8_t>(signal)).u64(value);
  if (auto sent = send_message(am_signal, data); !sent) lose(std::move(sent).error());
}

Status UcxPeer::send_message(unsigned id, ByteView data) {
  auto message = std::make_unique<Message>(Message{this, entry_->out.next_header(), Bytes(data.begin(), data.end())});
  const auto request = endpoint_->send(id, &message->header, sizeof message->header, message->data.data(), data.size(),
                                       &UcxPeer::on_sent, message.get());
  if (UCS_PTR_IS_ERR(request))
    return fail(TC_ERR_DISCONNECTED, "sending to {}: {}", address_, ucx_words(UCS_PTR_STATUS(request)));
  if (UCS_PTR_IS_PTR(request)) {
    messages_.push_back(message.release());
    transport_.watch_peers();
    message_bytes_out_ += data.size();
  }
  return {};
}

void UcxPeer::on_sent(void* request, ucs_status_t, void* user) noexcept {
  const std::unique_ptr<Message> message(static_cast<Message*>(user));
  ucp_request_free(request);
  if (message->peer == nullptr) return;
  message->peer->message_bytes_out_ -= message->data.size();
  std::erase(message->peer->messages_, message.get());
}

// ---- receiving ----

void UcxPeer::on_message(unsigned id, uint16_t sequence, ByteView data) noexcept {
  if (is_lost() || stage() == Stage::over) return;
  try {
    if (sequence != entry_->in.next_received)
      return lose(Error{TC_ERR_MALFORMED, fmt::format("message {} of {} came when {} was next", sequence, address_,
                                                      entry_->in.next_received)});
    ++entry_->in.next_received;
    take_message(id, data);
  } catch (const std::exception& problem) {
    lose_for(problem);
  }
}

void UcxPeer::take_message(unsigned id, ByteView data) {
  if (id == am_signal) return take_signal(data);
  if (stage() == Stage::closing) return;
  if (id == am_control) {
    if (data.size() < wire::header_bytes || data.size() > max_control_bytes)
      return lose(Error{TC_ERR_MALFORMED, fmt::format("a control frame of {} is {} bytes when {} to {} are allowed",
                                                      address_, data.size(), wire::header_bytes, max_control_bytes)});
    controls_in_.emplace_back(data.begin(), data.end());
    transport_.note(*this);
    return;
  }
  if (in_.uses_ring())
    return lose(
        Error{TC_ERR_MALFORMED, fmt::format("{} sent a batch of {} bytes beside its ring", address_, data.size())});
  entry_->in.way = Way::am;
  take_batch(data);
}

void UcxPeer::take_batch(ByteView batch) {
  auto& pulse = transport_.pulse;
  const auto frames = in_.append(batch);
  if (!frames) return lose(frames.error());
  pulse.arrivals += *frames == 1 ? uint64_t{1} : uint64_t{2};
  transport_.came.note(handle());
}

void UcxPeer::take_signal(ByteView data) {
  Reader r(data);
  const auto signal = static_cast<Signal>(r.u8());
  const uint64_t value = r.u64();
  if (auto read = r.finish_exactly("a signal between transports"); !read) return lose(std::move(read).error());
  switch (signal) {
    case Signal::wake: told_sleeping_ = false; return;
    case Signal::goodbye: return lose(Error{TC_ERR_DISCONNECTED, "the peer closed the connection"});
    case Signal::use_ring:
    case Signal::use_put:
      if (ring_memory_ == nullptr || way_in() != Way::automatic)
        return lose(Error{TC_ERR_MALFORMED, fmt::format("{} wants to use a ring that it was not offered", address_)});
      entry_->in.way = signal == Signal::use_ring ? Way::ring : Way::put;
      in_.use_ring(own_ring_);
      transport_.note(*this);
      return;
    case Signal::sleeping:
      if (out_.peer_sleeps(value)) {
        wake_due_ = true;
        transport_.note(*this);
      }
      return;
  }
  lose(Error{TC_ERR_MALFORMED,
             fmt::format("{} sent the signal {}, which has no meaning", address_, static_cast<unsigned>(signal))});
}

// ---- ending ----

void UcxPeer::lose(Error reason) noexcept {
  if (is_lost() || stage() == Stage::over) return;
  if (stage() == Stage::closing) {
    set_stage(Stage::over);
  } else {
    reason_ = std::move(reason);
    entry_->in.is_lost = true;
  }
  timer_ = 0;
  out_.shut_ring();
  out_.shut();
  transport_.note(*this);
}

void UcxPeer::lose_for(const std::exception& problem) noexcept { lose(Error{TC_ERR_NO_MEMORY, problem.what()}); }

void UcxPeer::close() noexcept {
  if (is_lost() || stage() >= Stage::closing) return;
  if (stage() == Stage::up) {
    out_.flush();
    send_signal(Signal::goodbye);
    set_stage(is_lost() ? Stage::over : Stage::closing);
    set_timer(closing_ns);
  } else {
    set_stage(Stage::over);
  }
  out_.shut_ring();
  out_.shut();
  transport_.note(*this);
}

void UcxPeer::orphan() noexcept {
  orphaned_ = true;
  set_stage(Stage::over);
  out_.shut_ring();
  let_go();
  out_.leave();
  in_.leave_ring();
  socket_.reset();
  ring_memory_.reset();
}

void UcxPeer::abandon() noexcept {
  if (orphaned_) return;
  transport_.came.forget();
  abandoned_ = true;
  if (stage() != Stage::closing) set_stage(Stage::over);
  out_.shut_ring();
  out_.shut();
  transport_.note(*this);
}

void UcxPeer::check_time(uint64_t now) noexcept {
  if (in_.broken() && !is_lost())
    lose(Error{TC_ERR_MALFORMED, fmt::format("the ring that {} writes has a pad which leads nowhere", address_)});
  if (timer_ == 0 || now < timer_ || is_lost()) return;
  if (peer_died_)
    lose(Error{TC_ERR_DISCONNECTED, fmt::format("{} is gone without a word", address_)});
  else
    lose(Error{TC_ERR_TIMEOUT, fmt::format("{} did not answer within {} s", address_, greeting_ns / 1'000'000'000)});
}

void UcxPeer::check_endpoint() noexcept {
  if (endpoint_ != nullptr && endpoint_->failed() && !is_lost())
    lose(Error{TC_ERR_DISCONNECTED, fmt::format("{} is gone: {}", address_, ucx_words(endpoint_->failure()))});
}

unsigned UcxPeer::deliver(Events& events) {
  unsigned done = 0;
  if (announce_) {
    announce_ = false;
    ++done;
    events.on_accept(std::make_unique<UcxConnection>(*this));
  }
  if (wake_due_) {
    wake_due_ = false;
    send_signal(Signal::wake);
  }
  while (!controls_in_.empty() && handle() != nullptr && stage() == Stage::up) {
    const Bytes frame = std::move(controls_in_.front());
    controls_in_.pop_front();
    ++done;
    events.on_control(*handle(), frame);
  }
  if (is_lost() && !lost_told_ && handle() != nullptr && stage() < Stage::closing) {
    lost_told_ = true;
    ++done;
    events.on_lost(*handle(), *reason_);
  }
  return done;
}

bool UcxPeer::settle() noexcept {
  if (!is_lost() && stage() != Stage::over) return false;
  if (socket_) {
    transport_.forget_socket(*this);
    socket_.reset();
  }
  let_go();
  return handle() == nullptr && (abandoned_ || !announce_);
}

void UcxPeer::let_go() noexcept {
  // Puts on their way use the key: the endpoint keeps it until they are done or cancelled.
  if (endpoint_ != nullptr && remote_key_ != nullptr && out_.in_flight() != 0) endpoint_->keep(std::move(remote_key_));
  remote_key_.reset();
  endpoint_.reset();
  out_.shut_wire();
}

// ---- sleeping ----

bool UcxPeer::busy() const noexcept {
  if (is_lost() || stage() == Stage::over || endpoint_ == nullptr) return false;
  return stage() == Stage::closing || peer_died_ || way_ != Way::ring || way_in() != Way::ring || !messages_.empty();
}

bool UcxPeer::has_frames() noexcept {
  if (handle() == nullptr || lost_told_ || stage() != Stage::up) return false;
  return in_.peek() != 0 || in_.refill();
}

// A put wakes nobody on shared memory, and a sender of puts cannot look into our memory. So it is told, once, and
// sends a wake with the next frame, or at once when it has put more than we have read.
void UcxPeer::fall_asleep() noexcept {
  in_.set_sleeping(true);
  if (way_in() != Way::put || told_sleeping_ || stage() != Stage::up) return;
  told_sleeping_ = true;
  send_signal(Signal::sleeping, in_.consumed());
}

void UcxPeer::wake_up() noexcept { in_.set_sleeping(false); }

}  // namespace tc::transport
