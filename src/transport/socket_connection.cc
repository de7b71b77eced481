// SPDX-License-Identifier: Apache-2.0
#include "transport/socket_connection.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "transport/origin.h"

namespace tc::transport {

namespace {

constexpr uint64_t next_attempt_ns = 250'000'000;

// How an attempt to connect ended; EINPROGRESS: it has not.
int result_of(const Fd& socket) noexcept {
  pollfd wanted{socket.get(), POLLOUT, 0};
  return ::poll(&wanted, 1, 0) == 0 ? EINPROGRESS : socket_error(socket);
}

}  // namespace

SocketConnection::SocketConnection(Hub& hub, Fd socket, std::string address, std::vector<SocketAddress> others)
    : hub_(hub),
      stream_(std::move(socket)),
      address_(std::move(address)),
      stage_(Stage::connecting),
      accepted_(false),
      others_(std::move(others)) {}

SocketConnection::SocketConnection(Hub& hub, SocketStream stream, Origin origin)
    : hub_(hub),
      stream_(std::move(stream)),
      address_(origin.text),
      origin_(std::move(origin)),
      stage_(Stage::greeted),
      accepted_(true) {}

SocketConnection::~SocketConnection() {
  drop_slower();
  hub_.poller.remove(stream_.socket());
  std::erase(hub_.connections, this);
  hub_.mark_changed();
}

Bytes SocketConnection::our_greeting(ByteView hello) {
  return encode_greeting({std::string(transport()), our_details(), {hello.begin(), hello.end()}});
}

// Our greeting leaves when the socket is connected, from inside a poll: then events may be delivered.
Status SocketConnection::start_greeting(ByteView hello, int attached) {
  hub_.connections.push_back(this);
  hub_.mark_changed();
  const uint64_t now = now_ns();
  greeting_deadline_ns_ = now + greeting_ns;
  next_address_ns_ = others_.empty() ? 0 : now + next_attempt_ns;
  hello_.assign(hello.begin(), hello.end());
  attached_ = attached;
  return hub_.poller.add(stream_.socket(), *this, watched_ = EPOLLOUT);
}

Status SocketConnection::start_accepted() {
  hub_.connections.push_back(this);
  hub_.mark_changed();
  return hub_.poller.add(stream_.socket(), *this, watched_);
}

void SocketConnection::watch(uint32_t events) noexcept {
  if (watched_ == events) return;
  watched_ = events;
  hub_.poller.change(stream_.socket(), *this, events);
}

void SocketConnection::on_ready(uint32_t events) noexcept {
  try {
    if (stage_ == Stage::open)
      on_socket(events);
    else if (stage_ == Stage::connecting)
      continue_connecting();
    else if (stage_ == Stage::handshake)
      handshake_->progress();
    else if (stage_ == Stage::greeting)
      continue_greeting();
  } catch (const std::bad_alloc&) {
    lose_without_memory();
  }
}

void SocketConnection::continue_connecting() {
  if (!take_connected()) return;
  drop_slower();
  const uint64_t now = now_ns();
  if (!others_.empty() && now < greeting_deadline_ns_)
    next_address_ns_ = now + (greeting_deadline_ns_ - now) / (others_.size() + 1);
  origin_ = origin_of(stream_.socket(), hub_.trusted_networks);
  if (!needs_encryption(origin_)) return begin_greeting();
  auto session = hub_.make_session(trust::TlsRole::client);
  if (!session) return lose(std::move(session).error());
  stream_.set_session(std::move(*session));
  stage_ = Stage::handshake;
  handshake_.emplace(hub_.handshakes, stream_, trust::TlsRole::client, static_cast<Handshake::Owner&>(*this))
      .progress();
}

void SocketConnection::on_handshake(Status result) noexcept {
  handshake_.reset();
  try {
    if (!result) return lose(std::move(result).error());
    origin_.key = stream_.session()->peer_key();
    origin_.is_key_temporary = stream_.session()->is_peer_key_temporary();
    begin_greeting();
  } catch (const std::bad_alloc&) {
    lose_without_memory();
  }
}

// Gives stream_ a socket that is connected. False: there is none now; without hope for one, the connection is lost.
bool SocketConnection::take_connected() {
  for (;;) {
    const int error = result_of(stream_.socket());
    if (error == 0) return true;
    for (auto& slower : slower_) {
      if (result_of(slower) != 0) continue;
      stream_ = SocketStream(std::exchange(slower, stream_.take_socket()));
      return true;
    }
    std::erase_if(slower_, [this](const Fd& slower) {  // its failure would be an event for ever
      const bool has_failed = result_of(slower) != EINPROGRESS;
      if (has_failed) hub_.poller.remove(slower);
      return has_failed;
    });
    if (error == EINPROGRESS || try_next_address(false)) return false;
    if (slower_.empty()) {
      lose(Error{TC_ERR_DISCONNECTED, system_words(error)});
      return false;
    }
    hub_.poller.remove(stream_.socket());
    stream_ = SocketStream(std::move(slower_.back()));
    slower_.pop_back();
  }
}

bool SocketConnection::try_next_address(bool beside_this_one) {
  next_address_ns_ = 0;
  while (!others_.empty()) {
    const auto next = others_.front();
    others_.erase(others_.begin());
    auto socket = connect_to(next);
    if (!socket || !hub_.poller.add(*socket, *this, EPOLLOUT)) continue;
    if (beside_this_one)
      slower_.push_back(stream_.take_socket());
    else
      hub_.poller.remove(stream_.socket());
    handshake_.reset();
    greeter_.reset();
    stream_ = SocketStream(std::move(*socket));
    stage_ = Stage::connecting;
    watched_ = EPOLLOUT;
    if (!others_.empty()) next_address_ns_ = now_ns() + next_attempt_ns;
    return true;
  }
  return false;
}

void SocketConnection::drop_slower() noexcept {
  for (const auto& slower : slower_) hub_.poller.remove(slower);
  slower_.clear();
}

void SocketConnection::begin_greeting() {
  if (auto expected = hub_.events.is_expected(address_, origin_); !expected) return lose(std::move(expected).error());
  stage_ = Stage::greeting;
  greeter_.emplace().queue(our_greeting(hello_), attached_);
  continue_greeting();
}

void SocketConnection::continue_greeting() {
  if (auto went = greeter_->progress(stream_); !went) return lose(std::move(went).error());
  watch(greeter_->wanted_events() | (stream_.has_unsent() ? EPOLLOUT : 0u));
  if (greeter_->has_sent() && greeter_->has_received()) handle_greeting();
}

void SocketConnection::handle_greeting() {
  stage_ = Stage::greeted;
  next_address_ns_ = 0;
  if (auto fine = on_greeted(greeter_->received()); !fine) return lose(std::move(fine).error());
  const Bytes hello = std::move(greeter_->received().hello);
  greeter_.reset();
  hub_.events.on_greeting(*this, hello);
}

Status SocketConnection::open(ByteView hello) {
  if (stage_ != Stage::greeted) return fail(TC_ERR_DISCONNECTED, "the connection to {} has ended", address_);
  TC_CHECK(open_streams());  // first, because a peer that was sent our greeting cannot be refused any more
  if (accepted_)
    if (auto said = stream_.send_at_once(our_greeting(hello)); !said) {
      shut_streams();
      return context("sending it our answer", std::move(said).error());
    }
  stage_ = Stage::open;
  hub_.mark_changed();
  greeting_deadline_ns_ = 0;
  hello_ = {};
  next_address_ns_ = 0;
  others_.clear();
  return {};
}

void SocketConnection::deliver_leftover() noexcept {
  if (is_open() && stream_.has_more()) on_ready(EPOLLIN);
}

void SocketConnection::refuse(const Error& why) noexcept {
  if (stage_ == Stage::ended) return;
  try {
    if (accepted_ && stage_ == Stage::greeted && stream_.send_at_once(encode_refusal(why))) hand_over({});
  } catch (const std::exception&) {  // no memory: it is refused without a reason
  }
  end_silently();
}

void SocketConnection::close() noexcept {
  if (stage_ != Stage::open) return end_silently();
  out().flush();
  if (stage_ != Stage::open) return end_silently();  // the flush found that the peer is lost
  shut_streams();
  stage_ = Stage::greeted;
  try {
    hand_over(unsent());
  } catch (const std::exception&) {  // no memory: the rest is not sent
  }
  end_silently();
}

// A TCP socket that is closed too early may lose what it has sent (closing_sockets.h). A Unix socket does not.
void SocketConnection::hand_over(Bytes unsent) {
  if (local_address(stream_.socket()).family() == AF_UNIX && unsent.empty()) return;
  hub_.poller.remove(stream_.socket());
  Bytes rest = stream_.finish(std::move(unsent));
  hub_.finish_closing(stream_.take_socket(), std::move(rest), address_);
}

void SocketConnection::end() noexcept {
  if (stage_ == Stage::open) shut_streams();
  stage_ = Stage::ended;
  greeting_deadline_ns_ = next_address_ns_ = 0;
  drop_slower();
  hub_.poller.remove(stream_.socket());
  handshake_.reset();
  stream_ = {};
  hub_.mark_changed();
}

// Ends the connection on our side: the owner knows, so on_lost() is not called.
void SocketConnection::end_silently() noexcept {
  loss_delivered_ = true;
  if (stage_ != Stage::ended) end();
}

void SocketConnection::lose(Error reason) noexcept {
  if (stage_ == Stage::ended) return;
  reason_ = std::move(reason);
  end();
}

bool SocketConnection::deliver_loss() noexcept {
  if (stage_ != Stage::ended || loss_delivered_) return false;
  loss_delivered_ = true;
  hub_.events.on_lost(*this, *reason_);
  return true;
}

void SocketConnection::check_deadline(uint64_t now) noexcept {
  if (greeting_deadline_ns_ == 0) return;
  try {
    if (now >= greeting_deadline_ns_) {
      if (is_open()) return on_deadline();
      return lose(Error{TC_ERR_TIMEOUT, fmt::format("it did not answer within {} s", greeting_ns / 1'000'000'000)});
    }
    if (next_address_ns_ != 0 && now >= next_address_ns_) (void)try_next_address(stage_ == Stage::connecting);
  } catch (const std::bad_alloc&) {
    lose_without_memory();
  }
}

}  // namespace tc::transport
