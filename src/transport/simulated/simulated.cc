// SPDX-License-Identifier: Apache-2.0
#include "transport/simulated/simulated.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "transport/simulated/pipe.h"
#include "transport/socket/byte_in.h"
#include "transport/socket/byte_out.h"

namespace tc::transport {

namespace {

class SimulatedTransport;

class SimulatedConnection final : public Connection, private Channel, private ByteOut::Owner {
 public:
  SimulatedConnection(SimulatedTransport& transport, SimulatedState& state, FlushList& list, std::shared_ptr<Pipe> in,
                      std::shared_ptr<Pipe> out, std::string peer, bool is_foreign, bool accepted)
      : transport_(&transport),
        state_(state),
        in_pipe_(std::move(in)),
        out_pipe_(std::move(out)),
        peer_(std::move(peer)),
        accepted_(accepted),
        out_(list, *this) {
    origin_ = {.host = peer_.substr(0, peer_.rfind(':')), .text = peer_, .same_user = !is_foreign};
  }
  ~SimulatedConnection() override;

  OutStream& out() noexcept override { return out_; }
  InStream& in() noexcept override { return in_; }
  bool is_polled() const noexcept override { return false; }
  Status open(ByteView hello) override;
  void refuse(const Error& why) noexcept override { end(why); }
  void drop() noexcept override { close(); }
  void close() noexcept override { end(Error{TC_ERR_DISCONNECTED, "it closed the connection"}); }
  std::string_view transport() const noexcept override { return "simulated"; }
  const std::string& peer_address() const noexcept override { return peer_; }
  const Origin& origin() const noexcept override { return origin_; }

 private:
  friend class SimulatedTransport;

  void end(const Error& why) noexcept;
  bool has_ended() const noexcept { return lost_ || closed_; }
  bool something_waits() noexcept;

  Result<size_t> send(ByteView bytes) override;
  Result<size_t> receive(std::span<std::byte> into) override;
  void on_channel_full() noexcept override { full_ = true; }
  void on_channel_lost(Error) noexcept override {}

  SimulatedTransport* transport_;  // null once the transport is gone
  SimulatedState& state_;
  std::shared_ptr<Pipe> in_pipe_, out_pipe_;
  std::string peer_;
  Origin origin_;
  const bool accepted_;
  ByteIn in_;
  ByteOut out_;
  std::optional<Error> trouble_;  // with what has arrived
  size_t offset_ = 0;             // of the first message, that was received in part
  bool open_ = false;
  bool full_ = false;
  bool lost_ = false;
  bool closed_ = false;
};

class SimulatedTransport final : public Transport {
 public:
  SimulatedTransport(SimulatedState& state, Events& events) : state_(state), events_(events) {}
  ~SimulatedTransport() override;

  Result<std::string> listen(std::string_view address) override;
  Result<std::unique_ptr<Connection>> connect(std::string_view address, ByteView hello) override;
  unsigned progress() noexcept override;
  void flush() noexcept override { flush_list_.flush_all(); }
  void sleep(Deadline deadline) noexcept override;
  void wake() noexcept override;

 private:
  friend class SimulatedConnection;

  std::unique_ptr<SimulatedConnection> adopt(SimulatedState::Arrival& arrival, bool accepted);
  unsigned accept_arrivals();
  unsigned deliver(size_t slot);
  bool deliver_greeting(SimulatedConnection& connection);
  bool deliver_bytes(SimulatedConnection& connection);
  std::optional<Error> why_ended(SimulatedConnection& connection);
  bool something_waits();

  SimulatedState& state_;
  Events& events_;
  std::shared_ptr<Sleeper> sleeper_ = std::make_shared<Sleeper>();
  FlushList flush_list_{pulse};
  std::vector<std::string> addresses_;
  std::vector<SimulatedConnection*> connections_;  // null: destroyed, swept up by the next progress()
};

// ---- A connection

SimulatedConnection::~SimulatedConnection() {
  end(Error{TC_ERR_DISCONNECTED, "it dropped the connection"});
  {
    const std::scoped_lock lock(state_.mutex);
    in_pipe_->abandoned = true;
    in_pipe_->messages.clear();
    in_pipe_->bytes = 0;
  }
  if (transport_ != nullptr)
    std::ranges::replace(transport_->connections_, this, static_cast<SimulatedConnection*>(nullptr));
}

Status SimulatedConnection::open(ByteView hello) {
  if (has_ended()) return fail(TC_ERR_DISCONNECTED, "the connection to {} has ended", peer_);
  in_.open();
  out_.open(*this);
  open_ = true;
  if (!accepted_) return {};
  const std::scoped_lock lock(state_.mutex);
  out_pipe_->greeting = Bytes(hello.begin(), hello.end());
  notify(*out_pipe_->receiver);
  return {};
}

void SimulatedConnection::end(const Error& why) noexcept {
  if (has_ended()) return;
  out_.flush();
  out_.shut();
  closed_ = true;
  const std::scoped_lock lock(state_.mutex);
  state_.end(*out_pipe_, why);
}

Result<size_t> SimulatedConnection::send(ByteView bytes) {
  const std::scoped_lock lock(state_.mutex);
  return state_.send(*out_pipe_, bytes);
}

// One message, or as much of it as there is room for: a receiver sees where messages end no more than a socket does.
Result<size_t> SimulatedConnection::receive(std::span<std::byte> into) {
  const std::scoped_lock lock(state_.mutex);
  auto& messages = in_pipe_->messages;
  if (trouble_ || messages.empty() || messages.front().wait != 0) return 0;
  auto& message = messages.front();
  if (offset_ == 0 && message.number != ++in_pipe_->taken) {
    trouble_ =
        Error{TC_ERR_DISCONNECTED, fmt::format("message {} came when {} was due", message.number, in_pipe_->taken)};
    return 0;
  }
  const auto rest = ByteView(message.bytes).subspan(offset_);
  const auto taken = rest.first(std::min(rest.size(), into.size()));
  std::ranges::copy(taken, into.begin());
  offset_ += taken.size();
  if (offset_ < message.bytes.size()) return taken.size();
  if (message.cuts) trouble_ = Error{TC_ERR_DISCONNECTED, "the connection was cut in the middle of a message"};
  in_pipe_->bytes -= message.bytes.size();
  messages.pop_front();
  offset_ = 0;
  notify(*in_pipe_->sender);
  return taken.size();
}

// With the mutex held.
bool SimulatedConnection::something_waits() noexcept {
  if (in_.peek() != 0 && in_.refill()) return true;
  if (has_ended()) return false;
  return in_pipe_->greeting || !in_pipe_->messages.empty() || in_pipe_->end || in_pipe_->cut || out_pipe_->cut ||
         (full_ && out_pipe_->bytes < Pipe::capacity);
}

// ---- The transport

SimulatedTransport::~SimulatedTransport() {
  for (SimulatedConnection* const connection : connections_) {
    if (connection == nullptr) continue;
    connection->end(Error{TC_ERR_DISCONNECTED, "its node ended"});
    connection->transport_ = nullptr;
  }
  const std::scoped_lock lock(state_.mutex);
  for (const auto& address : addresses_) {
    const auto found = state_.listeners.find(address);
    for (auto& arrival : found->second.arrivals) state_.end(*arrival.out, Error{TC_ERR_DISCONNECTED, "its node ended"});
    state_.listeners.erase(found);
  }
}

// "node:0" gets a number of its own, like a port; any other name is taken as it is.
Result<std::string> SimulatedTransport::listen(std::string_view address) {
  const std::scoped_lock lock(state_.mutex);
  std::string name(address);
  if (name.ends_with(":0")) name = fmt::format("{}:{}", name.substr(0, name.size() - 2), state_.next_port++);
  if (name.empty()) return fail(TC_ERR_INVALID, "a node on the simulated network needs a name to listen at");
  if (!state_.listeners.try_emplace(name, SimulatedState::Listener{sleeper_, {}}).second)
    return fail(TC_ERR_INVALID, "another node listens at '{}' already", name);
  addresses_.push_back(name);
  return name;
}

Result<std::unique_ptr<Connection>> SimulatedTransport::connect(std::string_view address, ByteView hello) {
  SimulatedState::Arrival ours;
  {
    const std::scoped_lock lock(state_.mutex);
    const auto found = state_.listeners.find(address);
    const bool nobody = found == state_.listeners.end() || state_.faults.disconnect;
    const auto& other = nobody ? sleeper_ : found->second.sleeper;
    ours.in = state_.make_pipe(other, sleeper_);
    ours.out = state_.make_pipe(sleeper_, other);
    ours.from = address;
    if (nobody) {
      state_.end(*ours.in, Error{TC_ERR_DISCONNECTED, fmt::format("nobody listens at '{}'", address)});
      ours.out->abandoned = true;
    } else {
      const auto from = addresses_.empty() ? std::string("somebody") : addresses_.front();
      found->second.arrivals.push_back({ours.out, ours.in, from, Bytes(hello.begin(), hello.end())});
      notify(*found->second.sleeper);
    }
  }
  return adopt(ours, false);
}

std::unique_ptr<SimulatedConnection> SimulatedTransport::adopt(SimulatedState::Arrival& arrival, bool accepted) {
  bool is_foreign;
  {
    const std::scoped_lock lock(state_.mutex);
    is_foreign = state_.foreign.contains(arrival.from);
  }
  auto connection =
      std::make_unique<SimulatedConnection>(*this, state_, flush_list_, std::move(arrival.in), std::move(arrival.out),
                                            std::move(arrival.from), is_foreign, accepted);
  connections_.push_back(connection.get());
  return connection;
}

unsigned SimulatedTransport::progress() noexcept {
  flush_list_.flush_all();
  unsigned done = accept_arrivals();
  for (size_t slot = 0; slot < connections_.size(); ++slot) done += deliver(slot);
  std::erase(connections_, nullptr);
  flush_list_.flush_all();
  pulse.urgent = true;
  return done;
}

unsigned SimulatedTransport::accept_arrivals() {
  std::deque<SimulatedState::Arrival> arrivals;
  {
    const std::scoped_lock lock(state_.mutex);
    for (const auto& address : addresses_)
      for (auto& queue = state_.listeners.find(address)->second.arrivals; !queue.empty(); queue.pop_front())
        arrivals.push_back(std::move(queue.front()));
  }
  for (auto& arrival : arrivals) {
    auto connection = adopt(arrival, true);
    if (const auto may = events_.may_connect(connection->origin()); !may)
      connection->refuse(may.error());
    else
      events_.on_accept(std::move(connection), arrival.hello);
  }
  return static_cast<unsigned>(arrivals.size());
}

unsigned SimulatedTransport::deliver(size_t slot) {
  SimulatedConnection* const connection = connections_[slot];
  if (connection == nullptr || connection->has_ended()) return 0;
  unsigned done = deliver_greeting(*connection) ? 1 : 0;
  if (connection->has_ended()) return done + 1;
  done += deliver_bytes(*connection) ? 1 : 0;
  if (connection->has_ended()) return done + 1;
  if (const auto why = why_ended(*connection)) {
    connection->end(Error{TC_ERR_DISCONNECTED, "it gave up the connection"});
    connection->lost_ = true;
    events_.on_lost(*connection, *why);
    ++done;
  }
  return done;
}

bool SimulatedTransport::deliver_greeting(SimulatedConnection& connection) {
  std::optional<Bytes> hello;
  bool has_room = false;
  {
    const std::scoped_lock lock(state_.mutex);
    hello.swap(connection.in_pipe_->greeting);
    for (auto& message : connection.in_pipe_->messages)
      if (message.wait > 0) --message.wait;
    has_room = connection.out_pipe_->bytes < Pipe::capacity;
  }
  if (connection.full_ && has_room) {
    connection.full_ = false;
    connection.out_.on_channel_room();
  }
  if (hello) events_.on_greeting(connection, *hello);
  return hello.has_value();
}

bool SimulatedTransport::deliver_bytes(SimulatedConnection& connection) {
  bool any = false;
  while (connection.open_ && !connection.has_ended() && connection.in_.has_room()) {
    const auto got = connection.in_.fill(connection);
    if (!got || *got == 0) break;
    any = true;
    events_.on_frames(connection);
  }
  return any;
}

std::optional<Error> SimulatedTransport::why_ended(SimulatedConnection& connection) {
  const std::scoped_lock lock(state_.mutex);
  if (connection.in_pipe_->cut || connection.out_pipe_->cut) return Error{TC_ERR_DISCONNECTED, "the network was cut"};
  if (connection.trouble_) return connection.trouble_;
  // What was sent before it comes first, if anybody takes it.
  const bool all_taken = connection.in_pipe_->messages.empty() || !connection.open_;
  return all_taken ? connection.in_pipe_->end : std::nullopt;
}

bool SimulatedTransport::something_waits() {
  for (const auto& address : addresses_)
    if (!state_.listeners.find(address)->second.arrivals.empty()) return true;
  return std::ranges::any_of(connections_, [](auto* c) { return c != nullptr && c->something_waits(); });
}

void SimulatedTransport::sleep(Deadline deadline) noexcept {
  flush_list_.flush_all();
  {
    std::unique_lock lock(state_.mutex);
    const auto left = std::chrono::nanoseconds(deadline.remaining_ns());
    if (!something_waits()) sleeper_->condition.wait_for(lock, left, [this] { return sleeper_->awake; });
    sleeper_->awake = false;
  }
  (void)progress();
}

void SimulatedTransport::wake() noexcept {
  const std::scoped_lock lock(state_.mutex);
  notify(*sleeper_);
}

}  // namespace

std::unique_ptr<Transport> SimulatedNetwork::join(Events& events) {
  return std::make_unique<SimulatedTransport>(*state_, events);
}

}  // namespace tc::transport
