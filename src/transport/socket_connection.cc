// SPDX-License-Identifier: Apache-2.0
#include "transport/socket_connection.h"

#include <algorithm>
#include <new>

#include "transport/origin.h"

namespace tc::transport {

namespace {

constexpr uint64_t greeting_ns = 10'000'000'000;  // a peer that does not answer is given up

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
  hub_.note_change();
}

Bytes SocketConnection::our_greeting(ByteView hello) {
  return encode_greeting({std::string(transport()), our_details(), {hello.begin(), hello.end()}});
}

Status SocketConnection::start_greeting(ByteView hello, int attached) {
  hub_.connections.push_back(this);
  hub_.note_change();
  give_up_at_ns_ = now_ns() + greeting_ns;
  greeting_ = our_greeting(hello);
  greeter_->say(greeting_, attached);
  watched_ = greeter_->wanted_events();
  return hub_.poller.add(socket_, *this, watched_);
}

Status SocketConnection::start_accepted() {
  hub_.connections.push_back(this);
  hub_.note_change();
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
      go_on_greeting();
  } catch (const std::bad_alloc&) {
    lose_for_memory();
  }
}

void SocketConnection::go_on_greeting() {
  if (const int error = socket_error(socket_); error != 0) {
    if (!try_next_address()) lose(Error{TC_ERR_DISCONNECTED, system_words(error)});
    return;
  }
  if (auto went = greeter_->go_on(socket_); !went) return lose(std::move(went).error());
  watch(greeter_->wanted_events());
  if (greeter_->has_said() && greeter_->has_heard()) hear_greeting();
}

void SocketConnection::hear_greeting() {
  stage_ = Stage::greeted;
  origin_ = origin_of(socket_);
  if (auto fine = on_greeted(greeter_->heard()); !fine) return lose(std::move(fine).error());
  const Bytes hello = std::move(greeter_->heard().hello);
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
    greeter_->say(greeting_);
    return hub_.poller.add(socket_, *this, watched_ = greeter_->wanted_events()).has_value();
  }
  return false;
}

Status SocketConnection::open(ByteView hello) {
  if (stage_ != Stage::greeted) return fail(TC_ERR_DISCONNECTED, "the connection to {} has ended", address_);
  TC_CHECK(open_streams());  // before the greeting: a peer that was greeted cannot be refused any more
  if (accepted_)
    if (auto said = say_at_once(socket_, our_greeting(hello)); !said) {
      shut_streams();
      return said;
    }
  stage_ = Stage::open;
  hub_.note_change();
  give_up_at_ns_ = 0;
  greeting_ = {};
  others_.clear();
  return {};
}

void SocketConnection::refuse(const Error& why) noexcept {
  if (stage_ == Stage::over) return;
  try {
    if (accepted_ && stage_ == Stage::greeted && say_at_once(socket_, encode_refusal(why))) part({});
  } catch (const std::exception&) {  // no memory: it is refused without a word
  }
  leave();
}

void SocketConnection::close() noexcept {
  if (stage_ != Stage::open) return leave();
  out().flush();
  if (stage_ != Stage::open) return leave();  // the peer was lost by it
  shut_streams();
  stage_ = Stage::greeted;
  try {
    part(unsent());
  } catch (const std::exception&) {  // no memory for the rest: the peer misses it
  }
  leave();
}

// A stream of bytes that is closed before its peer has read all of it may lose the rest.
void SocketConnection::part(Bytes unsent) {
  if (local_address(socket_).family() == AF_UNIX) return;
  hub_.poller.remove(socket_);
  hub_.part_with(std::move(socket_), std::move(unsent));
}

void SocketConnection::end() noexcept {
  if (stage_ == Stage::open) shut_streams();
  stage_ = Stage::over;
  give_up_at_ns_ = 0;
  hub_.poller.remove(socket_);
  socket_.reset();
  hub_.note_change();
}

// The end, on our own accord: nobody is told.
void SocketConnection::leave() noexcept {
  loss_told_ = true;
  if (stage_ != Stage::over) end();
}

void SocketConnection::lose(Error reason) noexcept {
  if (stage_ == Stage::over) return;
  reason_ = std::move(reason);
  end();
}

bool SocketConnection::deliver_loss() noexcept {
  if (stage_ != Stage::over || loss_told_) return false;
  loss_told_ = true;
  hub_.events.on_lost(*this, *reason_);
  return true;
}

void SocketConnection::check_time(uint64_t now) noexcept {
  if (give_up_at_ns_ == 0 || now < give_up_at_ns_) return;
  try {
    lose(Error{TC_ERR_TIMEOUT, fmt::format("it did not answer within {} s", greeting_ns / 1'000'000'000)});
  } catch (const std::bad_alloc&) {
    lose_for_memory();
  }
}

}  // namespace tc::transport
