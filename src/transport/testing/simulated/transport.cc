// SPDX-License-Identifier: Apache-2.0
#include "transport/testing/simulated/transport.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace tc::transport {

SimulatedTransport::~SimulatedTransport() {
  for (SimulatedConnection* const connection : connections_)
    if (connection != nullptr) connection->detach();
  const SimulatedState::Lock lock(state_);
  for (const auto& address : addresses_) {
    const auto found = state_.listeners.find(address);
    for (auto& arrival : found->second.arrivals) state_.end(*arrival.out, Error{TC_ERR_DISCONNECTED, "its node ended"});
    state_.listeners.erase(found);
  }
}

// "node:0" gets a number of its own, like a port; any other name is taken as it is.
Result<std::string> SimulatedTransport::listen(std::string_view address) {
  const SimulatedState::Lock lock(state_);
  std::string name(address);
  if (name.ends_with(":0")) name = fmt::format("{}:{}", name.substr(0, name.size() - 2), state_.next_port++);
  if (name.empty()) return fail(TC_ERR_INVALID, "a node on the simulated network needs a name to listen at");
  if (!state_.listeners.try_emplace(name, SimulatedState::Listener{sleeper_, {}}).second)
    return fail(TC_ERR_INVALID, "another node listens at '{}' already", name);
  state_.dead.erase(name);
  addresses_.push_back(name);
  return name;
}

Result<std::unique_ptr<Connection>> SimulatedTransport::connect(std::string_view address, ByteView hello) {
  SimulatedState::Arrival ours;
  const auto is_expected = ask_whether_expected(address);
  {
    const SimulatedState::Lock lock(state_);
    const auto found = state_.listeners.find(address);
    const auto from = addresses_.empty() ? std::string("a node that does not listen") : addresses_.front();
    const bool is_unreachable =
        found == state_.listeners.end() || state_.faults.disconnect || state_.dead.contains(from);
    const auto& other = is_unreachable ? sleeper_ : found->second.sleeper;
    ours.in = state_.make_pipe(other, sleeper_, std::string(address), from);
    ours.out = state_.make_pipe(sleeper_, other, from, std::string(address));
    ours.from = address;
    if (is_unreachable || !is_expected) {
      state_.end(*ours.in, is_unreachable ? Error{TC_ERR_DISCONNECTED, fmt::format("no node listens at '{}'", address)}
                                          : is_expected.error());
      ours.out->abandoned = true;
    } else {
      const auto arrives_ns = state_.arrival_of(*ours.out, hello.size());
      found->second.arrivals.push_back({ours.out, ours.in, from, Bytes(hello.begin(), hello.end()), arrives_ns});
      notify(*found->second.sleeper);
    }
  }
  return adopt(ours, false);
}

// As if the handshake took no time: the node that answers is known before the greeting leaves.
Status SimulatedTransport::ask_whether_expected(std::string_view address) {
  Origin origin;
  {
    const SimulatedState::Lock lock(state_);
    if (!state_.listeners.contains(address) || state_.faults.disconnect) return {};
    origin = state_.origin_of(std::string(address));
  }
  return events_.is_expected(address, origin);
}

std::unique_ptr<SimulatedConnection> SimulatedTransport::adopt(SimulatedState::Arrival& arrival, bool accepted) {
  Origin origin;
  {
    const SimulatedState::Lock lock(state_);
    origin = state_.origin_of(arrival.from);
  }
  const NetworkWork work;
  auto connection = std::make_unique<SimulatedConnection>(*this, state_, flush_list_, std::move(arrival),
                                                          std::move(origin), accepted);
  connections_.push_back(connection.get());
  return connection;
}

void SimulatedTransport::remove(SimulatedConnection& connection) noexcept {
  std::ranges::replace(connections_, &connection, static_cast<SimulatedConnection*>(nullptr));
}

unsigned SimulatedTransport::progress() noexcept {
  flush_list_.flush_all();
  unsigned done = accept_arrivals();
  for (size_t i = 0; i < connections_.size(); ++i)  // receivers may connect, so the list may grow
    if (connections_[i] != nullptr) done += connections_[i]->deliver(events_);
  std::erase(connections_, nullptr);
  flush_list_.flush_all();
  poll_state.urgent = true;
  return done;
}

unsigned SimulatedTransport::accept_arrivals() {
  std::vector<SimulatedState::Arrival> arrivals;
  {
    const SimulatedState::Lock lock(state_);
    for (const auto& address : addresses_)
      for (auto& queue = state_.listeners.find(address)->second.arrivals;
           !queue.empty() && state_.has_arrived(queue.front().arrives_ns); queue.pop_front())
        arrivals.push_back(std::move(queue.front()));
  }
  for (auto& arrival : arrivals) {
    const Bytes hello = std::move(arrival.hello);
    auto connection = adopt(arrival, true);
    try {
      accept(std::move(connection), hello);
    } catch (const std::bad_alloc&) {  // the connection has ended with that
    }
  }
  return static_cast<unsigned>(arrivals.size());
}

void SimulatedTransport::accept(std::unique_ptr<SimulatedConnection> connection, ByteView hello) {
  const auto may = events_.may_connect(connection->origin());
  if (may) return events_.on_accept(std::move(connection), hello);
  connection->refuse(may.error());
  events_.on_refused(connection->origin().text, may.error());
}

bool SimulatedTransport::has_events() {
  for (const auto& address : addresses_) {
    const auto& arrivals = state_.listeners.find(address)->second.arrivals;
    if (!arrivals.empty() && state_.has_arrived(arrivals.front().arrives_ns)) return true;
  }
  return std::ranges::any_of(connections_, [](auto* c) { return c != nullptr && c->has_events(); });
}

void SimulatedTransport::sleep(Deadline deadline) noexcept {
  flush_list_.flush_all();
  if (state_.sleep) {
    state_.sleep(deadline);
  } else {
    std::unique_lock lock(state_.mutex);
    const auto left = std::chrono::nanoseconds(deadline.remaining_ns());
    if (!has_events()) sleeper_->condition.wait_for(lock, left, [this] { return sleeper_->awake; });
    sleeper_->awake = false;
  }
  (void)progress();
}

// Nobody can wait on a descriptor here: for who asks whether there is something to do.
bool SimulatedTransport::arm(Deadline&) noexcept {
  flush_list_.flush_all();
  const SimulatedState::Lock lock(state_);
  return !has_events() && !std::exchange(sleeper_->awake, false);
}

void SimulatedTransport::wake() noexcept {
  const SimulatedState::Lock lock(state_);
  notify(*sleeper_);
}

std::unique_ptr<Transport> SimulatedNetwork::join(Events& events) {
  const NetworkWork work;
  return std::make_unique<SimulatedTransport>(*state_, events);
}

SimulatedConnection::SimulatedConnection(SimulatedTransport& transport, SimulatedState& state, FlushList& list,
                                         SimulatedState::Arrival arrival, Origin origin, bool accepted)
    : transport_(&transport),
      state_(state),
      in_pipe_(std::move(arrival.in)),
      out_pipe_(std::move(arrival.out)),
      peer_(std::move(arrival.from)),
      origin_(std::move(origin)),
      accepted_(accepted),
      out_(list, *this) {}

SimulatedConnection::~SimulatedConnection() {
  end(TC_ERR_DISCONNECTED, "it dropped the connection");
  {
    const SimulatedState::Lock lock(state_);
    in_pipe_->abandoned = true;
    in_pipe_->messages.clear();
    in_pipe_->bytes = 0;
    state_.tell_sender(*in_pipe_);
  }
  if (transport_ != nullptr) transport_->remove(*this);
}

void SimulatedConnection::detach() noexcept {
  end(TC_ERR_DISCONNECTED, "its node ended");
  transport_ = nullptr;
}

Status SimulatedConnection::open(ByteView hello) {
  if (has_ended()) return fail(TC_ERR_DISCONNECTED, "the connection to {} has ended", peer_);
  in_.open();
  out_.open(*this);
  open_ = true;
  if (!accepted_) return {};
  const SimulatedState::Lock lock(state_);
  if (out_pipe_->end) return {};
  out_pipe_->greeting = Bytes(hello.begin(), hello.end());
  out_pipe_->greeting_arrives_ns = state_.arrival_of(*out_pipe_, hello.size());
  notify(*out_pipe_->receiver);
  return {};
}

void SimulatedConnection::end(tc_status_t code, std::string_view why) noexcept {
  if (has_ended()) return;
  out_.flush();
  out_.shut();
  closed_ = true;
  const SimulatedState::Lock lock(state_);
  state_.end(*out_pipe_, Error{code, std::string(why)});
}

Result<size_t> SimulatedConnection::send(ByteView bytes) {
  const SimulatedState::Lock lock(state_);
  return state_.send(*out_pipe_, bytes);
}

// Takes one message, or as much of it as there is room for. The receiver does not see where messages end, as on a
// socket.
Result<size_t> SimulatedConnection::receive(std::span<std::byte> into) {
  const SimulatedState::Lock lock(state_);
  auto& messages = in_pipe_->messages;
  if (receive_error_ || messages.empty() || messages.front().delay != 0) return 0;
  if (!state_.has_arrived(messages.front().arrives_ns)) return 0;
  auto& message = messages.front();
  if (offset_ == 0 && message.number != ++in_pipe_->taken) {
    receive_error_ =
        Error{TC_ERR_DISCONNECTED, fmt::format("message {} came when {} was due", message.number, in_pipe_->taken)};
    return 0;
  }
  const auto rest = ByteView(message.bytes).subspan(offset_);
  const auto taken = rest.first(std::min(rest.size(), into.size()));
  std::ranges::copy(taken, into.begin());
  offset_ += taken.size();
  if (offset_ < message.bytes.size()) return taken.size();
  if (message.cuts) receive_error_ = Error{TC_ERR_DISCONNECTED, "the connection was cut in the middle of a message"};
  in_pipe_->bytes -= message.bytes.size();
  messages.pop_front();
  offset_ = 0;
  state_.tell_sender(*in_pipe_);
  return taken.size();
}

bool SimulatedConnection::has_events() noexcept {
  if (!paused_ && in_.peek() != 0 && in_.refill()) return true;
  if (has_ended()) return false;
  const auto& messages = in_pipe_->messages;
  const bool has_messages = !paused_ && !messages.empty() && state_.has_arrived(messages.front().arrives_ns);
  return (in_pipe_->greeting && state_.has_arrived(in_pipe_->greeting_arrives_ns)) || has_messages || ends() ||
         in_pipe_->cut || out_pipe_->cut || (full_ && out_pipe_->bytes < Pipe::capacity);
}

unsigned SimulatedConnection::deliver(Events& events) {
  if (has_ended()) return 0;
  unsigned done = 0;
  auto why = std::optional<Error>();
  try {
    done += deliver_greeting(events) ? 1 : 0;
    if (has_ended()) return done + 1;
    done += deliver_bytes(events) ? 1 : 0;
    if (has_ended()) return done + 1;
    why = why_ended();
  } catch (const std::bad_alloc&) {
    if (has_ended()) return done + 1;
    why = Error{TC_ERR_NO_MEMORY, "no memory"};
  }
  if (why) {
    end(TC_ERR_DISCONNECTED, "it ended the connection");
    lost_ = true;
    events.on_lost(*this, *why);  // the receiver may destroy this connection
    ++done;
  }
  return done;
}

bool SimulatedConnection::deliver_greeting(Events& events) {
  std::optional<Bytes> hello;
  bool has_room = false;
  {
    const SimulatedState::Lock lock(state_);
    if (state_.has_arrived(in_pipe_->greeting_arrives_ns)) hello.swap(in_pipe_->greeting);
    for (auto& message : in_pipe_->messages)
      if (message.delay > 0) --message.delay;
    has_room = out_pipe_->bytes < Pipe::capacity;
  }
  if (full_ && has_room) {
    full_ = false;
    out_.on_channel_room();
  }
  if (hello) events.on_greeting(*this, *hello);
  return hello.has_value();
}

bool SimulatedConnection::deliver_bytes(Events& events) {
  bool any = false;
  while (open_ && !paused_ && !has_ended() && in_.has_room()) {
    const auto got = in_.fill(*this);
    if (!got || *got == 0) break;
    any = true;
    events.on_frames(*this);
  }
  return any;
}

std::optional<Error> SimulatedConnection::why_ended() {
  const SimulatedState::Lock lock(state_);
  if (in_pipe_->cut || out_pipe_->cut) return Error{TC_ERR_DISCONNECTED, "the network was cut"};
  if (receive_error_) return receive_error_;
  return ends() ? in_pipe_->end : std::nullopt;
}

// What was sent before the end is delivered first, if the connection is open.
bool SimulatedConnection::ends() const {
  return in_pipe_->end && state_.has_arrived(in_pipe_->end_arrives_ns) && (in_pipe_->messages.empty() || !open_);
}

}  // namespace tc::transport
