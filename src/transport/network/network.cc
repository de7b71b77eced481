// SPDX-License-Identifier: Apache-2.0
#include "transport/network/network.h"

#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/plugin.h"
#include "base/speed.h"
#include "transport/ring/ring_connection.h"

namespace tc::transport {

namespace {

constexpr const char* fabric_plugin_name = "libthreechains_ucx.so";

// So few sockets are asked one by one whether something has come; of more, epoll tells which have.
constexpr size_t most_polled_directly = speed::direct ? 2 : 0;
constexpr uint64_t look_gap_ns = 2'000'000;  // between looks at descriptors by which nothing urgent can come
constexpr uint32_t calls_a_clock = 4;        // progress() calls between looks at the clock
constexpr uint64_t farewell_ns = 1'000'000'000;
// Without a barrier in other processes a frame could be slept over: nap only.
constexpr uint64_t nap_ns = 1'000'000;

constexpr std::array choices{std::pair{Choice::automatic, "auto"}, std::pair{Choice::shm, "shm"},
                             std::pair{Choice::tcp, "tcp"}, std::pair{Choice::ucx, "ucx"},
                             std::pair{Choice::ucx_put, "ucx-put"}};

// UCX has something to do: the next progress() does it.
struct FabricWatcher final : Watcher {
  void on_ready(uint32_t) noexcept override {}
} fabric_watcher;

}  // namespace

std::string_view choice_name(Choice choice) noexcept {
  return std::ranges::find(choices, choice, &decltype(choices)::value_type::first)->second;
}

Result<Choice> parse_choice(std::string_view name) {
  for (const auto& [choice, known] : choices)
    if (known == name) return choice;
  return fail(TC_ERR_INVALID, "'{}' is no transport: it is auto, shm, tcp, ucx or ucx-put", name);
}

Result<std::unique_ptr<Transport>> Network::create(const NetworkOptions& options, Events& events) {
  if (!ring_size_is_valid(options.ring_bytes))
    return fail(TC_ERR_INVALID, "a ring of {} bytes: it wants to be a power of two from {} to {}", options.ring_bytes,
                min_ring_bytes, max_ring_bytes);
  std::unique_ptr<Network> made(new Network(options, events));
  TC_CHECK(made->start());
  return std::unique_ptr<Transport>(std::move(made));
}

Network::Network(const NetworkOptions& options, Events& events) : Hub(events, Transport::pulse), options_(options) {}

Status Network::start() {
  TC_CHECK(poller.open());
  can_use_rings_ = RingConnection::is_possible();
  if (options_.choice == Choice::ucx || options_.choice == Choice::ucx_put) return open_fabric();
  return {};
}

Status Network::open_fabric() {
  const auto library = open_plugin(fabric_plugin_name, options_.fabric_plugin);
  if (!library)
    return fail(TC_ERR_UNSUPPORTED,
                "the plug-in for UCX cannot be loaded ({}); install {} and UCX, or choose another transport",
                library.error().message, fabric_plugin_name);
  const auto found = find_in_plugin(*library, fabric_factory_name);
  if (!found) return context("the plug-in for UCX", found.error());
  auto options = options_.fabric;
  options.puts = options_.choice == Choice::ucx_put;
  Error error{TC_ERR_UNSUPPORTED, fmt::format("{} is not of this version of Three-Chains", fabric_plugin_name)};
  fabric_.reset(reinterpret_cast<FabricFactory>(*found)(fabric_plugin_version, options, *this, error));
  if (fabric_ == nullptr) return fail(std::move(error));
  return poller.add(fabric_->event_descriptor(), fabric_watcher, EPOLLIN);
}

// Connections are gone by now; what they still had to say leaves.
Network::~Network() {
  fabric_.reset();
  for (const auto deadline = Deadline::after_ms(farewell_ns / 1'000'000); farewells_.has_unsent();) {
    if (deadline.passed()) break;
    poller.wait(deadline);
    farewells_.sweep(now_ns());
  }
  for (const auto& path : paths_) (void)::unlink(path.c_str());
}

void Network::part_with(Fd socket, Bytes unsent) noexcept {
  try {
    farewells_.add(std::move(socket), std::move(unsent));
  } catch (const std::exception&) {  // no memory: it ends at once
  }
  pulse.urgent = is_meeting_ = true;
}

unsigned Network::progress() noexcept {
  unsigned done = has_changed ? deliver_losses() : 0;  // first of all: connections may be gone
  if (!flush_list.empty()) flush_list.flush_all();
  done += take_in();
  if (has_changed) [[unlikely]]
    done += deliver_losses();
  if (!flush_list.empty()) flush_list.flush_all();
  return done;
}

unsigned Network::take_in() noexcept {
  ++calls_;
  unsigned done = fabric_ != nullptr ? fabric_->progress() : 0;
  for (auto* const connection : direct_) done += connection->poll() ? 1u : 0u;
  if (!polls_directly_ || is_meeting_) return done + poll_descriptors();
  if (calls_ % calls_a_clock == 0 && now_ns() - last_look_ns_ >= look_gap_ns) done += poll_descriptors();
  return done;
}

unsigned Network::poll_descriptors() noexcept {
  const unsigned told = poller.poll();
  if (polls_directly_ || somebody_meets()) see_to_time(now_ns());
  return told;
}

bool Network::somebody_meets() const noexcept {
  return is_meeting_ || reception_.has_half_open() || !farewells_.empty();
}

void Network::see_to_time(uint64_t now) noexcept {
  last_look_ns_ = now;
  (void)reception_.sweep(now);
  (void)farewells_.sweep(now);
  for (size_t i = 0; i < connections.size(); ++i) connections[i]->check_time(now);
  review();
}

// Which descriptors have to be looked at, and how often.
void Network::review() noexcept {
  try {
    direct_.clear();
    polled_.clear();
    sockets_ = 0;
    is_meeting_ = reception_.has_half_open() || !farewells_.empty();
    for (auto* const connection : connections) {
      is_meeting_ |= connection->gives_up_at_ns() != 0;
      if (!connection->is_open()) continue;
      if (connection->is_polled()) polled_.push_back(static_cast<RingConnection*>(connection));
      if (connection->transport() != TcpConnection::name) continue;
      ++sockets_;
      if (sockets_ <= most_polled_directly) direct_.push_back(static_cast<TcpConnection*>(connection));
    }
    if (sockets_ > most_polled_directly) direct_.clear();
  } catch (const std::exception&) {
    direct_.clear();  // no memory: epoll tells of all
    sockets_ = connections.size();
  }
  polls_directly_ = sockets_ == direct_.size();
  pulse.urgent = sockets_ != 0 || fabric_ != nullptr || is_meeting_;
}

// Their receivers may connect, so that the list grows meanwhile.
unsigned Network::deliver_losses() noexcept {
  unsigned done = 0;
  has_changed = false;
  for (size_t i = 0; i < connections.size(); ++i) done += connections[i]->deliver_loss() ? 1u : 0u;
  review();
  return done;
}

bool Network::has_frames() const noexcept {
  return has_changed || std::ranges::any_of(polled_, [](auto* connection) { return connection->has_frames(); });
}

// In this order: say on every ring that we sleep; make sure that senders either see it or have made their frame visible
// (the barrier: a sender's store of a header and its load of the flag have no fence between them); look once more.
bool Network::falls_asleep(Deadline& deadline) noexcept {
  if (has_frames()) return false;
  if (!polled_.empty()) {
    for (auto* const connection : polled_) connection->set_sleeping(true);
    if (!RingConnection::barrier()) deadline = Deadline::at_ns(std::min(deadline.at_ns(), now_ns() + nap_ns));
    if (has_frames()) return false;
  }
  return fabric_ == nullptr || fabric_->arm();
}

void Network::sleep(Deadline deadline) noexcept {
  flush_list.flush_all();
  if (has_changed) (void)deliver_losses();
  const uint64_t now = now_ns();
  uint64_t until = deadline.at_ns();
  if (somebody_meets()) {
    for (const auto due : {reception_.sweep(now), farewells_.sweep(now)})
      if (due != 0) until = std::min(until, due);
    for (const auto* connection : connections)
      if (const auto due = connection->gives_up_at_ns(); due != 0) until = std::min(until, due);
  }
  if (const auto due = fabric_ != nullptr ? fabric_->next_time() : 0; due != 0) until = std::min(until, due);
  auto wake_up = Deadline::at_ns(until);
  const bool asleep = falls_asleep(wake_up);
  poller.wait(asleep ? wake_up : Deadline::at_ns(0));
  for (auto* const connection : polled_) connection->set_sleeping(false);
  if (somebody_meets()) see_to_time(now_ns());
  if (fabric_ != nullptr) (void)fabric_->progress();
  if (has_changed) (void)deliver_losses();
  flush_list.flush_all();
}

}  // namespace tc::transport
