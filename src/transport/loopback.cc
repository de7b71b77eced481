// SPDX-License-Identifier: Apache-2.0
#include "transport/loopback.h"

#include <algorithm>
#include <chrono>

#include "transport/batch_in.h"
#include "transport/batch_out.h"
#include "transport/lone_call.h"
#include "transport/loopback_pipe.h"

namespace tc::transport {

namespace {

constexpr size_t batch_bytes = 16 * 1024;
constexpr size_t window_bytes = 1024 * 1024;
constexpr size_t max_control_bytes = 64 * 1024;
constexpr size_t max_queued_controls = 4096;
constexpr std::string_view offer_text = "loopback";

class LoopbackTransport;

class LoopbackOut final : public BatchOut {
 public:
  LoopbackOut(FlushList& list, LoopbackState& state, LoopbackPipe& pipe) : BatchOut(list), state_(state), pipe_(pipe) {}

 private:
  bool transmit(OutBuffer&, std::byte* first, size_t size) noexcept override {
    const std::scoped_lock lock(state_.mutex);
    state_.send(pipe_, LoopbackMessageKind::batch, {first, size});
    return true;
  }
  LoopbackState& state_;
  LoopbackPipe& pipe_;
};

class LoopbackConnection final : public Connection {
 public:
  LoopbackConnection(LoopbackTransport& transport, LoopbackState& state, FlushList& list,
                     std::shared_ptr<LoopbackPipe> in, std::shared_ptr<LoopbackPipe> out, std::string peer,
                     uint32_t index)
      : transport_(&transport),
        state_(state),
        in_pipe_(std::move(in)),
        out_pipe_(std::move(out)),
        peer_(std::move(peer)),
        index_(index),
        out_(list, state, *out_pipe_) {}
  ~LoopbackConnection() override;

  uint32_t index() const noexcept override { return index_; }
  OutStream& out() noexcept override { return out_; }
  InStream& in() noexcept override { return in_; }
  Status send_control(ByteView frame) override;
  Result<Bytes> offer(Way allowed) override;
  Status open_way(Way wish, ByteView peer_offer) override;
  Way way() const noexcept override { return out_.is_open() ? Way::loopback : Way::automatic; }
  std::string peer_address() const override { return peer_; }
  std::string origin() const override { return peer_; }
  void close() noexcept override { say_goodbye("the peer closed the connection"); }

 private:
  friend class LoopbackTransport;

  void say_goodbye(std::string_view words) noexcept;
  bool ended() const noexcept { return lost_ || closed_; }
  // Takes what has arrived off the pipe.
  std::deque<LoopbackMessage> arrived(bool& cut);

  LoopbackTransport* transport_;  // null once the transport is gone
  LoopbackState& state_;
  std::shared_ptr<LoopbackPipe> in_pipe_, out_pipe_;
  std::string peer_;
  const uint32_t index_;
  BatchIn in_{batch_bytes, window_bytes};
  LoopbackOut out_;
  bool lost_ = false;
  bool closed_ = false;
};

class LoopbackTransport final : public Transport {
 public:
  LoopbackTransport(LoopbackState& state, Events& events) : Transport(came_), state_(state), events_(events) {}
  ~LoopbackTransport() override;

  Result<std::string> listen(std::string_view address) override;
  Result<std::unique_ptr<Connection>> connect(std::string_view address) override;
  unsigned progress() noexcept override;
  bool sleep(Deadline deadline) noexcept override;
  void wake() noexcept override;
  std::string version() const override { return "1"; }
  std::string name() const override { return "loopback"; }

 private:
  friend class LoopbackConnection;

  std::unique_ptr<LoopbackConnection> adopt(LoopbackState::Arrival arrival);
  unsigned accept_arrivals();
  unsigned deliver(size_t slot);
  void lose(LoopbackConnection& connection, const Error& reason);
  bool something_waits();

  LoopbackState& state_;
  Events& events_;
  std::shared_ptr<LoopbackSleeper> sleeper_ = std::make_shared<LoopbackSleeper>();
  Arrivals came_;
  FlushList flush_list_{pulse};
  LoneCall lone_call_;
  uint32_t next_index_ = 0;
  std::vector<std::string> addresses_;
  std::vector<LoopbackConnection*> connections_;  // null: destroyed, swept up by the next progress()
};

LoopbackConnection::~LoopbackConnection() {
  say_goodbye("the peer dropped the connection");
  {
    const std::scoped_lock lock(state_.mutex);
    in_pipe_->abandoned = true;
    in_pipe_->messages.clear();
  }
  if (transport_ != nullptr)
    std::ranges::replace(transport_->connections_, this, static_cast<LoopbackConnection*>(nullptr));
}

void LoopbackConnection::say_goodbye(std::string_view words) noexcept {
  if (ended()) return;
  out_.flush();
  out_.shut();
  closed_ = true;
  const std::scoped_lock lock(state_.mutex);
  state_.send(*out_pipe_, LoopbackMessageKind::closed, as_bytes(words));
}

Status LoopbackConnection::send_control(ByteView frame) {
  if (ended()) return fail(TC_ERR_DISCONNECTED, "the connection to {} is gone", peer_);
  if (frame.size() < wire::header_bytes || frame.size() > max_control_bytes)
    return fail(TC_ERR_TOO_LARGE, "a control frame is {} bytes when {} to {} are allowed", frame.size(),
                wire::header_bytes, max_control_bytes);
  const std::scoped_lock lock(state_.mutex);
  if (out_pipe_->controls >= max_queued_controls)
    return fail(TC_ERR_LIMIT, "{} control frames to {} wait to be sent", out_pipe_->controls, peer_);
  if (!state_.send(*out_pipe_, LoopbackMessageKind::control, frame))
    return fail(TC_ERR_DISCONNECTED, "the connection to {} is gone", peer_);
  return {};
}

Result<Bytes> LoopbackConnection::offer(Way) {
  const ByteView text = as_bytes(offer_text);
  return Bytes(text.begin(), text.end());
}

Status LoopbackConnection::open_way(Way wish, ByteView peer_offer) {
  if (ended()) return fail(TC_ERR_DISCONNECTED, "the connection to {} is gone", peer_);
  if (wish != Way::automatic && wish != Way::loopback)
    return fail(TC_ERR_UNSUPPORTED, "no way '{}' leads through the loopback network", way_name(wish));
  if (as_text(peer_offer) != offer_text)
    return fail(TC_ERR_MALFORMED, "an offer of {} bytes is not the loopback's, which is '{}'", peer_offer.size(),
                offer_text);
  if (!out_.is_open()) out_.open(batch_bytes, window_bytes);
  return {};
}

std::deque<LoopbackMessage> LoopbackConnection::arrived(bool& cut) {
  std::deque<LoopbackMessage> taken;
  const std::scoped_lock lock(state_.mutex);
  cut = in_pipe_->cut || out_pipe_->cut;
  auto& messages = in_pipe_->messages;
  for (auto& message : messages)
    if (message.wait > 0) --message.wait;
  while (!messages.empty() && messages.front().wait == 0) {
    if (messages.front().kind == LoopbackMessageKind::control) --in_pipe_->controls;
    taken.push_back(std::move(messages.front()));
    messages.pop_front();
  }
  return taken;
}

LoopbackTransport::~LoopbackTransport() {
  for (LoopbackConnection* const connection : connections_) {
    if (connection == nullptr) continue;
    connection->say_goodbye("the peer's node ended");
    connection->transport_ = nullptr;
  }
  const std::scoped_lock lock(state_.mutex);
  for (const auto& address : addresses_) {
    const auto found = state_.listeners.find(address);
    for (auto& arrival : found->second.arrivals) state_.send(*arrival.out, LoopbackMessageKind::closed, {});
    state_.listeners.erase(found);
  }
}

// "node:0" gets a number of its own, like a port; any other name is taken as it is.
Result<std::string> LoopbackTransport::listen(std::string_view address) {
  const std::scoped_lock lock(state_.mutex);
  std::string name(address);
  if (name.ends_with(":0")) name = fmt::format("{}:{}", name.substr(0, name.size() - 2), state_.next_port++);
  if (name.empty()) return fail(TC_ERR_INVALID, "a node on the loopback network needs a name to listen at");
  if (!state_.listeners.try_emplace(name, LoopbackState::Listener{sleeper_, {}}).second)
    return fail(TC_ERR_INVALID, "another node listens at '{}' already", name);
  addresses_.push_back(name);
  return name;
}

Result<std::unique_ptr<Connection>> LoopbackTransport::connect(std::string_view address) {
  LoopbackState::Arrival ours;
  {
    const std::scoped_lock lock(state_.mutex);
    const auto found = state_.listeners.find(address);
    ours.in = state_.make_pipe(sleeper_);
    ours.from = address;
    if (found == state_.listeners.end() || state_.faults.disconnect) {
      ours.out = state_.make_pipe(sleeper_);
      state_.send(*ours.in, LoopbackMessageKind::closed, as_bytes(fmt::format("nobody listens at '{}'", address)));
      ours.out->abandoned = true;
    } else {
      ours.out = state_.make_pipe(found->second.sleeper);
      const auto from = addresses_.empty() ? std::string("somebody") : addresses_.front();
      found->second.arrivals.push_back({ours.out, ours.in, from});
      found->second.sleeper->awake = true;
      found->second.sleeper->condition.notify_all();
    }
  }
  return adopt(std::move(ours));
}

std::unique_ptr<LoopbackConnection> LoopbackTransport::adopt(LoopbackState::Arrival arrival) {
  auto connection =
      std::make_unique<LoopbackConnection>(*this, state_, flush_list_, std::move(arrival.in), std::move(arrival.out),
                                           std::move(arrival.from), next_index_++);
  connections_.push_back(connection.get());
  return connection;
}

unsigned LoopbackTransport::progress() noexcept {
  unsigned done = flush_list_.flush_all();
  done += accept_arrivals();
  pulse.hands_over = pulse.at_once;
  for (size_t slot = 0; slot < connections_.size(); ++slot) done += deliver(slot);
  pulse.hands_over = false;
  std::erase(connections_, nullptr);
  return done + flush_list_.flush_all();
}

unsigned LoopbackTransport::accept_arrivals() {
  std::deque<LoopbackState::Arrival> arrivals;
  {
    const std::scoped_lock lock(state_.mutex);
    for (const auto& address : addresses_)
      for (auto& queue = state_.listeners.find(address)->second.arrivals; !queue.empty(); queue.pop_front())
        arrivals.push_back(std::move(queue.front()));
  }
  for (auto& arrival : arrivals) events_.on_accept(adopt(std::move(arrival)));
  return static_cast<unsigned>(arrivals.size());
}

// The receiver of an event may destroy any connection: look at the slot again after each.
unsigned LoopbackTransport::deliver(size_t slot) {
  LoopbackConnection* const connection = connections_[slot];
  if (connection == nullptr || connection->ended()) return 0;
  bool cut = false;
  const auto messages = connection->arrived(cut);
  if (cut) {
    lose(*connection, Error{TC_ERR_DISCONNECTED, "the network was cut"});
    return 1;
  }
  for (const auto& message : messages) {
    if (connections_[slot] == nullptr || connection->ended()) break;
    if (message.kind != LoopbackMessageKind::closed && message.number != ++connection->in_pipe_->taken) {
      lose(*connection, Error{TC_ERR_MALFORMED, fmt::format("message {} came when {} was due", message.number,
                                                            connection->in_pipe_->taken)});
    } else if (message.kind == LoopbackMessageKind::closed) {
      lose(*connection, Error{TC_ERR_DISCONNECTED, std::string(as_text(message.bytes))});
    } else if (message.kind == LoopbackMessageKind::batch) {
      if (lone_call_.run(message.bytes, connection->in_.bypass(), *connection, connection->index(), pulse, events_))
        continue;
      if (auto taken = connection->in_.append(message.bytes); !taken) lose(*connection, taken.error());
    } else if (message.bytes.size() < wire::header_bytes) {
      lose(*connection, Error{TC_ERR_MALFORMED, fmt::format("a control frame is {} bytes when its header is {}",
                                                            message.bytes.size(), wire::header_bytes)});
    } else {
      events_.on_control(*connection, message.bytes);
    }
  }
  return static_cast<unsigned>(messages.size());
}

void LoopbackTransport::lose(LoopbackConnection& connection, const Error& reason) {
  connection.say_goodbye("the peer gave up the connection");
  connection.lost_ = true;
  events_.on_lost(connection, reason);
}

bool LoopbackTransport::something_waits() {
  for (const auto& address : addresses_)
    if (!state_.listeners.find(address)->second.arrivals.empty()) return true;
  return std::ranges::any_of(connections_, [](LoopbackConnection* c) {
    if (c == nullptr) return false;
    if (c->in_.peek() != 0 || c->in_.refill()) return true;
    return !c->ended() && (!c->in_pipe_->messages.empty() || c->in_pipe_->cut || c->out_pipe_->cut);
  });
}

bool LoopbackTransport::sleep(Deadline deadline) noexcept {
  flush_list_.flush_all();
  std::unique_lock lock(state_.mutex);
  const auto left = std::chrono::nanoseconds(deadline.remaining_ns());
  const bool disturbed =
      something_waits() || sleeper_->condition.wait_for(lock, left, [this] { return sleeper_->awake; });
  sleeper_->awake = false;
  return !disturbed;
}

void LoopbackTransport::wake() noexcept {
  const std::scoped_lock lock(state_.mutex);
  sleeper_->awake = true;
  sleeper_->condition.notify_all();
}

}  // namespace

std::unique_ptr<Transport> LoopbackNetwork::join(Events& events) {
  return std::make_unique<LoopbackTransport>(*state_, events);
}

}  // namespace tc::transport
