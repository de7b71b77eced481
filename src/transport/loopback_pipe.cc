// SPDX-License-Identifier: Apache-2.0
#include "transport/loopback_pipe.h"

#include <algorithm>

namespace tc::transport {

namespace {

bool nth(unsigned count, unsigned every) noexcept { return every != 0 && count % every == 0; }

void notify(LoopbackSleeper& sleeper) {
  sleeper.awake = true;
  sleeper.condition.notify_all();
}

}  // namespace

std::shared_ptr<LoopbackPipe> LoopbackState::make_pipe(std::shared_ptr<LoopbackSleeper> receiver) {
  auto pipe = std::make_shared<LoopbackPipe>();
  pipe->receiver = std::move(receiver);
  pipe->cut = faults.disconnect;
  std::erase_if(pipes, [](const auto& old) { return old.expired(); });
  pipes.push_back(pipe);
  return pipe;
}

bool LoopbackState::send(LoopbackPipe& pipe, LoopbackMessageKind kind, ByteView bytes) {
  if (pipe.cut || pipe.abandoned) return false;
  LoopbackMessage message{kind, 0, 0, Bytes(bytes.begin(), bytes.end())};
  unsigned copies = 1;
  if (kind != LoopbackMessageKind::closed) {
    const unsigned count = ++pipe.sent;
    message.number = count;
    if (nth(count, faults.truncate_every)) message.bytes.resize(message.bytes.size() / 2);
    if (nth(count, faults.flip_every) && !message.bytes.empty()) {
      // Another bit each time, yet the same ones in every run.
      const size_t bit = count * 37u % (message.bytes.size() * 8);
      message.bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    }
    if (nth(count, faults.duplicate_every)) copies = 2;
    if (nth(count, faults.drop_every)) copies = 0;
    message.wait = faults.delay_progress;
  }
  for (; copies != 0; --copies) {
    pipe.controls += kind == LoopbackMessageKind::control ? 1 : 0;
    pipe.messages.push_back(message);
  }
  notify(*pipe.receiver);
  return true;
}

void LoopbackState::cut_all() {
  for (const auto& weak : pipes) {
    if (const auto pipe = weak.lock()) {
      pipe->cut = true;
      pipe->messages.clear();
      pipe->controls = 0;
      notify(*pipe->receiver);
    }
  }
}

LoopbackNetwork::LoopbackNetwork() : state_(std::make_unique<LoopbackState>()) {}
LoopbackNetwork::~LoopbackNetwork() = default;

void LoopbackNetwork::set_faults(const Faults& faults) {
  const std::scoped_lock lock(state_->mutex);
  state_->faults = faults;
  if (faults.disconnect) state_->cut_all();
}

size_t LoopbackNetwork::in_flight() const {
  const std::scoped_lock lock(state_->mutex);
  size_t bytes = 0;
  for (const auto& weak : state_->pipes)
    if (const auto pipe = weak.lock())
      for (const auto& message : pipe->messages) bytes += message.bytes.size();
  return bytes;
}

}  // namespace tc::transport
