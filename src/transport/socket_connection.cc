// SPDX-License-Identifier: Apache-2.0
#include "transport/socket_connection.h"

#include <algorithm>
#include <new>

#include "transport/origin.h"

namespace tc::transport {

namespace {

constexpr uint64_t greeting_ns = 10'000'000'000;  // for the peer's answer

}  // namespace

SocketConnection::SocketConnection(Hub& hub, Fd socket, std::string address, std::vector<SocketAddress> others)
    : hub_(hub),
      socket_(std::move(socket)),
      address_(std::move(address)),
      stage_(Stage::greeting),
      accepted_(false),
      greeter_(std::in_place),
      others_(std::move(others)) {}

SocketConnection::SocketConnection(Hub& hub, Fd socket, Origin origin)
    : hub_(hub),
      socket_(std::move(socket)),
      address_(origin.text),
      origin_(std::move(origin)),
      stage_(Stage::greeted),
      accepted_(true) {}

SocketConnection::~SocketConnection() {
  hub_.poller.remove(socket_);
  std::erase(hub_.connections, this);
  hub_.mark_changed();
}

Bytes SocketConnection::our_greeting(ByteView hello) {
  return encode_greeting({std::string(transport()), our_details(), {hello.begin(), hello.end()}});
}

Status SocketConnection::start_greeting(ByteView hello, int attached) {
  hub_.connections.push_back(this);
  hub_.mark_changed();
  greeting_deadline_ns_ = now_ns() + greeting_ns;
  greeting_ = our_greeting(hello);
  greeter_->queue(greeting_, attached);
  watched_ = greeter_->wanted_events();
  return hub_.poller.add(socket_, *this, watched_);
}

Status SocketConnection::start_accepted() {
  hub_.connections.push_back(this);
  hub_.mark_changed();
  return hub_.poller.add(socket_, *this, watched_);
}

void SocketConnection::watch(uint32_t events) noexcept {
  if (watched_ == events) return;
  watched_ = events;
  hub_.poller.change(socket_, *this, events);
}

void SocketConnection::on_ready(uint32_t events) noexcept {
  try {
    if (stage_ == Stage::open)
      on_socket(events);
    else if (stage_ == Stage::greeting)
      continue_greeting();
  } catch (const std::bad_alloc&) {
    lose_without_memory();
  }
}

void SocketConnection::continue_greeting() {
  if (const int error = socket_error(socket_); error != 0) {
    if (!try_next_address()) lose(Error{TC_ERR_DISCONNECTED, system_words(error)});
    return;
  }
  if (auto went = greeter_->progress(socket_); !went) return lose(std::move(went).error());
  watch(greeter_->wanted_events());
  if (greeter_->has_sent() && greeter_->has_received()) handle_greeting();
}

void SocketConnection::handle_greeting() {
  stage_ = Stage::greeted;
  origin_ = origin_of(socket_);
  if (auto fine = on_greeted(greeter_->received()); !fine) return lose(std::move(fine).error());
  const Bytes hello = std::move(greeter_->received().hello);
  greeter_.reset();
  hub_.events.on_greeting(*this, hello);
}

bool SocketConnection::try_next_address() {
  while (!others_.empty()) {
    const auto next = others_.front();
    others_.erase(others_.begin());
    auto socket = connect_to(next);
    if (!socket) continue;
    hub_.poller.remove(socket_);
    socket_ = std::move(*socket);
    greeter_->queue(greeting_);
    return hub_.poller.add(socket_, *this, watched_ = greeter_->wanted_events()).has_value();
  }
  return false;
}

Status SocketConnection::open(ByteView hello) {
  if (stage_ != Stage::greeted) return fail(TC_ERR_DISCONNECTED, "the connection to {} has ended", address_);
  TC_CHECK(open_streams());  // first, because a peer that was sent our greeting cannot be refused any more
  if (accepted_)
    if (auto said = send_at_once(socket_, our_greeting(hello)); !said) {
      shut_streams();
      return said;
    }
  stage_ = Stage::open;
  hub_.mark_changed();
  greeting_deadline_ns_ = 0;
  greeting_ = {};
  others_.clear();
  return {};
}

void SocketConnection::refuse(const Error& why) noexcept {
  if (stage_ == Stage::ended) return;
  try {
    if (accepted_ && stage_ == Stage::greeted && send_at_once(socket_, encode_refusal(why))) hand_over({});
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

// A TCP socket that is closed too early may lose what it has sent (network/closing_sockets.h). A Unix socket does not.
void SocketConnection::hand_over(Bytes unsent) {
  if (local_address(socket_).family() == AF_UNIX) return;
  hub_.poller.remove(socket_);
  hub_.finish_closing(std::move(socket_), std::move(unsent));
}

void SocketConnection::end() noexcept {
  if (stage_ == Stage::open) shut_streams();
  stage_ = Stage::ended;
  greeting_deadline_ns_ = 0;
  hub_.poller.remove(socket_);
  socket_.reset();
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
  if (greeting_deadline_ns_ == 0 || now < greeting_deadline_ns_) return;
  try {
    lose(Error{TC_ERR_TIMEOUT, fmt::format("it did not answer within {} s", greeting_ns / 1'000'000'000)});
  } catch (const std::bad_alloc&) {
    lose_without_memory();
  }
}

}  // namespace tc::transport
