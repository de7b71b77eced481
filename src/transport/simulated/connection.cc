// SPDX-License-Identifier: Apache-2.0
#include "transport/simulated/connection.h"

#include <algorithm>

#include "transport/simulated/transport.h"

namespace tc::transport {

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
  end(Error{TC_ERR_DISCONNECTED, "it dropped the connection"});
  {
    const std::scoped_lock lock(state_.mutex);
    in_pipe_->abandoned = true;
    in_pipe_->messages.clear();
    in_pipe_->bytes = 0;
  }
  if (transport_ != nullptr) transport_->remove(*this);
}

void SimulatedConnection::detach() noexcept {
  end(Error{TC_ERR_DISCONNECTED, "its node ended"});
  transport_ = nullptr;
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

// Takes one message, or as much of it as there is room for. The receiver does not see where messages end, as on a
// socket.
Result<size_t> SimulatedConnection::receive(std::span<std::byte> into) {
  const std::scoped_lock lock(state_.mutex);
  auto& messages = in_pipe_->messages;
  if (receive_error_ || messages.empty() || messages.front().delay != 0) return 0;
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
  notify(*in_pipe_->sender);
  return taken.size();
}

bool SimulatedConnection::has_events() noexcept {
  if (!paused_ && in_.peek() != 0 && in_.refill()) return true;
  if (has_ended()) return false;
  const bool has_messages = !paused_ && !in_pipe_->messages.empty();
  return in_pipe_->greeting || has_messages || (in_pipe_->end && (in_pipe_->messages.empty() || !open_)) ||
         in_pipe_->cut || out_pipe_->cut || (full_ && out_pipe_->bytes < Pipe::capacity);
}

unsigned SimulatedConnection::deliver(Events& events) {
  if (has_ended()) return 0;
  unsigned done = deliver_greeting(events) ? 1 : 0;
  if (has_ended()) return done + 1;
  done += deliver_bytes(events) ? 1 : 0;
  if (has_ended()) return done + 1;
  if (const auto why = why_ended()) {
    end(Error{TC_ERR_DISCONNECTED, "it ended the connection"});
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
    const std::scoped_lock lock(state_.mutex);
    hello.swap(in_pipe_->greeting);
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
  const std::scoped_lock lock(state_.mutex);
  if (in_pipe_->cut || out_pipe_->cut) return Error{TC_ERR_DISCONNECTED, "the network was cut"};
  if (receive_error_) return receive_error_;
  // What was sent before the end is delivered first, if the connection is open.
  const bool all_taken = in_pipe_->messages.empty() || !open_;
  return all_taken ? in_pipe_->end : std::nullopt;
}

}  // namespace tc::transport
