// SPDX-License-Identifier: Apache-2.0
#include "transport/simulated/transport.h"

#include <algorithm>
#include <chrono>

namespace tc::transport {

SimulatedTransport::~SimulatedTransport() {
  for (SimulatedConnection* const connection : connections_)
    if (connection != nullptr) connection->detach();
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
  const auto is_expected = ask_whether_expected(address);
  {
    const std::scoped_lock lock(state_.mutex);
    const auto found = state_.listeners.find(address);
    const bool is_unreachable = found == state_.listeners.end() || state_.faults.disconnect;
    const auto& other = is_unreachable ? sleeper_ : found->second.sleeper;
    ours.in = state_.make_pipe(other, sleeper_);
    ours.out = state_.make_pipe(sleeper_, other);
    ours.from = address;
    if (is_unreachable || !is_expected) {
      state_.end(*ours.in, is_unreachable ? Error{TC_ERR_DISCONNECTED, fmt::format("no node listens at '{}'", address)}
                                          : is_expected.error());
      ours.out->abandoned = true;
    } else {
      const auto from = addresses_.empty() ? std::string("a node that does not listen") : addresses_.front();
      found->second.arrivals.push_back({ours.out, ours.in, from, Bytes(hello.begin(), hello.end())});
      notify(*found->second.sleeper);
    }
  }
  return adopt(ours, false);
}

// As if the handshake took no time: who answers is known before the greeting leaves.
Status SimulatedTransport::ask_whether_expected(std::string_view address) {
  Origin origin;
  {
    const std::scoped_lock lock(state_.mutex);
    if (!state_.listeners.contains(address) || state_.faults.disconnect) return {};
    origin = state_.origin_of(std::string(address));
  }
  return events_.is_expected(address, origin);
}

std::unique_ptr<SimulatedConnection> SimulatedTransport::adopt(SimulatedState::Arrival& arrival, bool accepted) {
  Origin origin;
  {
    const std::scoped_lock lock(state_.mutex);
    origin = state_.origin_of(arrival.from);
  }
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
  std::deque<SimulatedState::Arrival> arrivals;
  {
    const std::scoped_lock lock(state_.mutex);
    for (const auto& address : addresses_)
      for (auto& queue = state_.listeners.find(address)->second.arrivals; !queue.empty(); queue.pop_front())
        arrivals.push_back(std::move(queue.front()));
  }
  for (auto& arrival : arrivals) {
    const Bytes hello = std::move(arrival.hello);
    auto connection = adopt(arrival, true);
    if (const auto may = events_.may_connect(connection->origin()); !may) {
      connection->refuse(may.error());
      events_.on_refused(connection->origin().text, may.error());
    } else {
      events_.on_accept(std::move(connection), hello);
    }
  }
  return static_cast<unsigned>(arrivals.size());
}

bool SimulatedTransport::has_events() {
  for (const auto& address : addresses_)
    if (!state_.listeners.find(address)->second.arrivals.empty()) return true;
  return std::ranges::any_of(connections_, [](auto* c) { return c != nullptr && c->has_events(); });
}

void SimulatedTransport::sleep(Deadline deadline) noexcept {
  flush_list_.flush_all();
  {
    std::unique_lock lock(state_.mutex);
    const auto left = std::chrono::nanoseconds(deadline.remaining_ns());
    if (!has_events()) sleeper_->condition.wait_for(lock, left, [this] { return sleeper_->awake; });
    sleeper_->awake = false;
  }
  (void)progress();
}

void SimulatedTransport::wake() noexcept {
  const std::scoped_lock lock(state_.mutex);
  notify(*sleeper_);
}

std::unique_ptr<Transport> SimulatedNetwork::join(Events& events) {
  return std::make_unique<SimulatedTransport>(*state_, events);
}

}  // namespace tc::transport
