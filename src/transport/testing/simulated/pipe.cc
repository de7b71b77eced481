// SPDX-License-Identifier: Apache-2.0
#include "transport/testing/simulated/pipe.h"

#include <algorithm>
#include <utility>

namespace tc::transport {

namespace {

bool nth(unsigned count, unsigned every) noexcept { return every != 0 && count % every == 0; }

// Of this thread.
thread_local unsigned works = 0;

}  // namespace

NetworkWork::NetworkWork() noexcept { ++works; }
NetworkWork::~NetworkWork() { --works; }
bool NetworkWork::is_on() noexcept { return works != 0; }

void notify(Sleeper& sleeper) {
  sleeper.awake = true;
  sleeper.condition.notify_all();
}

std::shared_ptr<Pipe> SimulatedState::make_pipe(std::shared_ptr<Sleeper> sender, std::shared_ptr<Sleeper> receiver,
                                                std::string from, std::string to) {
  auto pipe = std::make_shared<Pipe>();
  pipe->from = std::move(from);
  pipe->to = std::move(to);
  pipe->sender = std::move(sender);
  pipe->receiver = std::move(receiver);
  pipe->cut = faults.disconnect;
  std::erase_if(pipes, [](const auto& old) { return old.expired(); });
  pipes.push_back(pipe);
  return pipe;
}

uint64_t SimulatedState::arrival_of(Pipe& pipe, size_t bytes) const {
  if (!travel.arrival) return 0;
  pipe.last_arrival_ns = std::max(pipe.last_arrival_ns, travel.arrival(pipe.from, pipe.to, bytes));
  if (travel.due) travel.due(pipe.to, pipe.last_arrival_ns);
  return pipe.last_arrival_ns;
}

void SimulatedState::tell_sender(Pipe& pipe) const {
  notify(*pipe.sender);
  if (std::exchange(pipe.was_full, false) && travel.due) travel.due(pipe.from, travel.now());
}

size_t SimulatedState::send(Pipe& pipe, ByteView bytes) {
  if (pipe.cut || pipe.abandoned || pipe.end) return bytes.size();  // they are lost
  const size_t room = Pipe::capacity - std::min(Pipe::capacity, pipe.bytes);
  pipe.was_full = bytes.size() > room;
  bytes = bytes.first(std::min(bytes.size(), room));
  if (bytes.empty()) return 0;
  const unsigned count = ++pipe.sent;
  Message message{.delay = faults.delay_progress,
                  .arrives_ns = arrival_of(pipe, bytes.size()),
                  .number = count,
                  .cuts = false,
                  .bytes = {bytes.begin(), bytes.end()}};
  if (nth(count, faults.truncate_every)) {
    message.bytes.resize(message.bytes.size() / 2);
    message.cuts = true;
  }
  if (nth(count, faults.flip_every) && !message.bytes.empty()) {
    // A different bit each time, the same ones in every run.
    const size_t bit = count * 37u % (message.bytes.size() * 8);
    message.bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
  }
  const unsigned copies = nth(count, faults.drop_every) ? 0 : nth(count, faults.duplicate_every) ? 2 : 1;
  for (unsigned i = 0; i < copies; ++i) {
    pipe.bytes += message.bytes.size();
    pipe.messages.push_back(message);
  }
  notify(*pipe.receiver);
  return bytes.size();
}

void SimulatedState::end(Pipe& pipe, Error why) {
  if (pipe.end) return;
  pipe.end = std::move(why);
  pipe.end_arrives_ns = arrival_of(pipe, 0);
  notify(*pipe.receiver);
}

// The first message may have been taken in part, so it stays.
void SimulatedState::break_off(Pipe& pipe, unsigned parts) {
  if (pipe.end) return;
  size_t kept = pipe.bytes * parts / 256;
  for (auto message = pipe.messages.begin(); message != pipe.messages.end(); ++message) {
    const size_t size = message->bytes.size();
    if (message != pipe.messages.begin() && size > kept) {
      pipe.bytes -= size;
      message->bytes.resize(kept);
      pipe.bytes += kept;
      const auto rest = kept == 0 ? message : message + 1;
      for (auto lost = rest; lost != pipe.messages.end(); ++lost) pipe.bytes -= lost->bytes.size();
      pipe.messages.erase(rest, pipe.messages.end());
      break;
    }
    kept -= std::min(kept, size);
  }
  end(pipe, Error{TC_ERR_DISCONNECTED, "the connection broke off"});
}

void SimulatedState::cut_all() {
  for (const auto& weak : pipes) {
    if (const auto pipe = weak.lock()) {
      pipe->cut = true;
      pipe->messages.clear();
      pipe->bytes = 0;
      notify(*pipe->receiver);
    }
  }
}

SimulatedNetwork::SimulatedNetwork() : state_(std::make_unique<SimulatedState>()) {}
SimulatedNetwork::~SimulatedNetwork() = default;

Origin SimulatedState::origin_of(const std::string& address) const {
  Origin origin{.host = address.substr(0, address.rfind(':')),
                .text = address,
                .same_user = true,
                .on_trusted_network = false,
                .key = {}};
  if (const auto found = proofs.find(address); found != proofs.end()) {
    origin.same_user = false;
    origin.on_trusted_network = found->second.on_trusted_network;
    origin.key = found->second.key;
  }
  return origin;
}

void SimulatedNetwork::make_foreign(std::string address, std::optional<trust::PublicKey> key) {
  const SimulatedState::Lock lock(*state_);
  state_->proofs[std::move(address)] = {key, false};
}

void SimulatedNetwork::make_trusted_network(std::string address) {
  const SimulatedState::Lock lock(*state_);
  state_->proofs[std::move(address)] = {{}, true};
}

void SimulatedNetwork::set_faults(const Faults& faults) {
  const SimulatedState::Lock lock(*state_);
  state_->faults = faults;
  if (faults.disconnect) state_->cut_all();
}

void SimulatedNetwork::set_travel(Travel travel) {
  const SimulatedState::Lock lock(*state_);
  state_->travel = std::move(travel);
}

void SimulatedNetwork::set_sleep(std::function<void(Deadline)> sleep) {
  const SimulatedState::Lock lock(*state_);
  state_->sleep = std::move(sleep);
}

void SimulatedNetwork::break_off(std::string_view one, std::string_view other, unsigned parts) {
  const SimulatedState::Lock lock(*state_);
  for (const auto& weak : state_->pipes) {
    const auto pipe = weak.lock();
    if (pipe != nullptr && ((pipe->from == one && pipe->to == other) || (pipe->from == other && pipe->to == one)))
      state_->break_off(*pipe, parts);
  }
}

void SimulatedNetwork::die(std::string address, unsigned parts) {
  const SimulatedState::Lock lock(*state_);
  for (const auto& weak : state_->pipes)
    if (const auto pipe = weak.lock(); pipe != nullptr && (pipe->from == address || pipe->to == address))
      state_->break_off(*pipe, parts);
  state_->dead.insert(std::move(address));
}

size_t SimulatedNetwork::in_flight() const {
  const SimulatedState::Lock lock(*state_);
  size_t bytes = 0;
  for (const auto& weak : state_->pipes)
    if (const auto pipe = weak.lock()) bytes += pipe->bytes;
  return bytes;
}

}  // namespace tc::transport
