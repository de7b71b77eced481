// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstring>

namespace tc::python {

namespace {

// How long a waiting thread polls before it sleeps between looks: as long as a node itself does.
constexpr uint64_t spin_ns = 150'000;
// A drive returns after this, for signals; a sleeper's sleep ends after this, in case a wake was lost.
constexpr uint64_t slice_ns = 50'000'000;
constexpr uint32_t sleep_ms = 50;
constexpr uint32_t keeper_sleep_ms = 1000;
// The keeper stays away from a node that the program used so recently: between submit() and result() lies a
// microsecond, and waking the keeper up costs fifty.
// (On a machine with more to do than processors, threads are away for milliseconds: that is no idleness.)
constexpr uint64_t recent_ns = 20'000'000;
constexpr long nap_ns = 50'000;
constexpr long long_nap_ns = 200'000;
constexpr uint64_t short_naps_for_ns = 1'000'000;
// So long a waiting thread polls without giving up its processor: most answers come sooner.
constexpr uint64_t keep_processor_ns = 10'000;
// Answers that overtook others are looked for this often.
constexpr uint64_t full_scan_ns = 1'000'000;

uint64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

void nap(long ns) noexcept {
  const timespec time{0, ns};
  nanosleep(&time, nullptr);
}

// Counts the forks between the process that made the first node and this one: the one thing that has to be known
// process-wide.
std::atomic<unsigned>& forks() {
  static std::atomic<unsigned> count{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { forks().fetch_add(1); });
  (void)registered;
  return count;
}

void check(tc_status_t status) {
  if (status != TC_OK) throw Failure(status, tc_error_message());
}

}  // namespace

// The right to touch the node.
class Engine::Turn {
 public:
  explicit Turn(Engine& engine) : engine_(engine) {
    if (!engine.mutex_.try_lock()) {
      engine.wanted_.fetch_add(1);
      engine.wake();  // it may be asleep with the lock held
      engine.mutex_.lock();
      engine.wanted_.fetch_sub(1);
    }
    if (engine.closed()) {
      engine.mutex_.unlock();
      throw Failure(TC_ERR_CLOSED, "this node is closed");
    }
  }
  ~Turn() { engine_.mutex_.unlock(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Engine& engine_;
};

Call::~Call() {
  if (fork_ == forks().load()) tc_future_free(future_);
}

// What a child of fork() inherits from UCX (its threads are gone, its descriptors are the parent's) cannot be used, and
// UCX offers no way to start again.
constexpr const char* start_afresh =
    "start processes with the 'spawn' or 'forkserver' method, or fork before the first "
    "node is made";

Engine::Engine(const Options& options) : fork_(forks().load()) {
  if (fork_ != 0)
    throw Failure(TC_ERR_UNSUPPORTED, std::string("this process was forked from one that had a node, and cannot have "
                                                  "one of its own; ") +
                                          start_afresh);
  tc_config_t* config = nullptr;
  check(tc_config_create(&config));
  const std::unique_ptr<tc_config_t, void (*)(tc_config_t*)> owner(config, tc_config_free);
  for (const auto& [key, value] : options) check(tc_config_set(config, key.c_str(), value.c_str()));
  check(tc_node_create(config, &node_));
}

Engine::~Engine() {
  if (inherited()) return;  // the parent's connections must not be closed by its child
  stop_keeping();
  (void)close();
}

bool Engine::inherited() const noexcept { return fork_ != forks().load(std::memory_order_relaxed); }

void Engine::check_usable() const {
  if (inherited())
    throw Failure(TC_ERR_CLOSED, std::string("this node belongs to the process that made it, and this one was forked "
                                             "from it; ") +
                                     start_afresh);
  if (closed()) throw Failure(TC_ERR_CLOSED, "this node is closed");
}

void Engine::note_activity() noexcept { active_ns_.store(now_ns(), std::memory_order_relaxed); }

void Engine::wake() noexcept {
  const std::lock_guard lock(waking_);
  if (!closed()) tc_node_wake(node_);
}

std::string Engine::address() {
  check_usable();
  const Turn turn(*this);
  return tc_node_address(node_);
}

uint64_t Engine::stat(const std::string& name) {
  check_usable();
  const Turn turn(*this);
  uint64_t value = 0;
  check(tc_node_stat(node_, name.c_str(), &value));
  return value;
}

void Engine::reload_keys() {
  check_usable();
  check(tc_node_reload_keys(node_));
}

void Engine::expose(const std::string& name, void* data, size_t size) {
  check_usable();
  const Turn turn(*this);
  check(tc_node_expose(node_, name.c_str(), data, size));
}

size_t Engine::connect(const std::string& address, uint32_t timeout_ms) {
  check_usable();
  const Turn turn(*this);
  note_activity();
  tc_endpoint_t* endpoint = nullptr;
  check(tc_node_connect(node_, address.c_str(), timeout_ms, &endpoint));
  tc_endpoint_set_timeout(endpoint, 0);  // who waits for room must not hold the lock meanwhile
  endpoints_.push_back({endpoint, {}});
  return endpoints_.size() - 1;
}

Engine::Endpoint& Engine::endpoint_at(size_t index) {
  if (index >= endpoints_.size() || endpoints_[index].handle == nullptr)
    throw Failure(TC_ERR_CLOSED, "this endpoint is closed");
  return endpoints_[index];
}

void Engine::disconnect(size_t endpoint, uint32_t timeout_ms) {
  check_usable();
  const Turn turn(*this);
  auto* const handle = std::exchange(endpoint_at(endpoint).handle, nullptr);
  check(tc_endpoint_free(handle, timeout_ms));
}

std::string Engine::peer(size_t endpoint) {
  check_usable();
  const Turn turn(*this);
  return tc_endpoint_peer(endpoint_at(endpoint).handle);
}

uint32_t Engine::peer_id(size_t endpoint) {
  check_usable();
  const Turn turn(*this);
  return tc_endpoint_peer_id(endpoint_at(endpoint).handle);
}

std::string Engine::transport(size_t endpoint) {
  check_usable();
  const Turn turn(*this);
  return tc_endpoint_transport(endpoint_at(endpoint).handle);
}

tc_status_t Engine::endpoint_status(size_t endpoint) {
  check_usable();
  const Turn turn(*this);
  return tc_endpoint_status(endpoint_at(endpoint).handle);
}

size_t Engine::register_ifunc(std::span<const std::byte> bundle) {
  check_usable();
  const Turn turn(*this);
  tc_ifunc_t* ifunc = nullptr;
  check(tc_ifunc_register_memory(node_, bundle.data(), bundle.size(), &ifunc));
  ifuncs_.push_back(ifunc);
  return ifuncs_.size() - 1;
}

MessagePtr Engine::make_message(size_t ifunc, void* source_args, size_t size) {
  check_usable();
  const Turn turn(*this);
  if (ifunc >= ifuncs_.size()) throw Failure(TC_ERR_NOT_FOUND, "no such ifunc");
  tc_message_t* message = nullptr;
  check(tc_message_create(ifuncs_[ifunc], source_args, size, &message));
  return MessagePtr(message);
}

MessagePtr Engine::make_message(size_t ifunc, std::span<const Part> parts) {
  size_t size = 0;
  for (const auto& part : parts) size += part.size + part.padding;
  auto message = make_message(ifunc, nullptr, size);
  auto* to = static_cast<std::byte*>(tc_message_payload(message.get(), nullptr));
  for (const auto& [bytes, count, padding] : parts) {
    if (count != 0) std::memcpy(to, bytes, count);
    if (padding != 0) std::memset(to + count, 0, padding);
    to += count + padding;
  }
  return message;
}

CallPtr Engine::try_call(size_t endpoint, tc_message_t& message, uint32_t deadline_ms, void* owner) {
  check_usable();
  const Turn turn(*this);
  note_activity();
  auto& way = endpoint_at(endpoint);
  tc_future_t* future = nullptr;
  const auto status = tc_endpoint_call(way.handle, &message, deadline_ms, &future);
  if (status == TC_ERR_BUSY) return nullptr;
  check(status);
  auto call = std::make_shared<Call>(future);
  call->fork_ = fork_;
  call->owner = owner;  // before anyone else sees the call
  way.pending.push_back(call);
  pending_.fetch_add(1, std::memory_order_relaxed);
  return call;
}

bool Engine::try_send(size_t endpoint, tc_message_t& message) {
  check_usable();
  const Turn turn(*this);
  note_activity();
  const auto status = tc_endpoint_send(endpoint_at(endpoint).handle, &message);
  if (status == TC_ERR_BUSY) return false;
  check(status);
  return true;
}

void Engine::make_room() {
  check_usable();
  {
    const Turn turn(*this);
    note_activity();
    for (int i = 0; i < 64; ++i) check(tc_node_poll(node_, nullptr));
  }
  sched_yield();
}

void Engine::flush(size_t endpoint, uint32_t timeout_ms) {
  // In slices, so that others get their turns; a flush that timed out has lost nothing.
  const auto until = now_ns() + uint64_t{timeout_ms} * 1'000'000;
  while (true) {
    check_usable();
    const auto now = now_ns();
    const auto left = until > now ? (until - now) / 1'000'000 : 0;
    const Turn turn(*this);
    note_activity();
    const auto status =
        tc_endpoint_flush(endpoint_at(endpoint).handle, static_cast<uint32_t>(std::min<uint64_t>(left, 20)));
    if (status == TC_OK) return;
    if (status != TC_ERR_TIMEOUT || left == 0) throw Failure(status, tc_error_message());
  }
}

// ---- Waiting ------------------------------------------------------------------------------------------------

bool Engine::heads_ready() {
  bool found = false;
  for (auto& endpoint : endpoints_) {
    auto& pending = endpoint.pending;
    while (!pending.empty() && pending.front()->claimed()) {
      pending.pop_front();
      pending_.fetch_sub(1, std::memory_order_relaxed);
    }
    found = found || (!pending.empty() && pending.front()->ready());
  }
  return found;
}

// Looks behind the heads too, but not every time.
bool Engine::any_ready() {
  if (heads_ready()) return true;
  if (pending_.load(std::memory_order_relaxed) == 0) return false;
  const auto now = now_ns();
  if (now - scanned_ns_ < full_scan_ns) return false;
  scanned_ns_ = now;
  for (const auto& endpoint : endpoints_)
    for (const auto& call : endpoint.pending)
      if (!call->claimed() && call->ready()) return true;
  return false;
}

std::vector<CallPtr> Engine::take_ready() {
  std::vector<CallPtr> taken;
  for (auto& endpoint : endpoints_) {
    const auto settled = [&](const CallPtr& call) {
      if (!call->claimed()) {
        if (!call->ready()) return false;
        if (call->claim()) taken.push_back(call);
      }
      pending_.fetch_sub(1, std::memory_order_relaxed);
      return true;
    };
    std::erase_if(endpoint.pending, settled);
  }
  return taken;
}

std::vector<CallPtr> Engine::collect() {
  check_usable();
  const Turn turn(*this);
  return take_ready();
}

// With the lock. True when `outcome` says how it ended; false when another thread wants its turn.
bool Engine::drive_locked(Call& call, uint64_t until_ns, Drive& outcome) {
  const auto start = now_ns();
  while (true) {
    for (int look = 0; look < 16; ++look) {
      if (tc_node_poll(node_, nullptr) != TC_OK) break;
      if (call.ready()) return outcome = Drive::ready, true;
      if (wanted_.load(std::memory_order_relaxed) != 0) return false;
    }
    if (any_ready()) return outcome = Drive::others, true;
    const auto now = now_ns();
    if (now >= until_ns) return outcome = Drive::timeout, true;
    if (now - start < spin_ns) {
      if (now - start > keep_processor_ns) sched_yield();
      continue;
    }
    tc_node_wait(node_, static_cast<uint32_t>(std::min<uint64_t>((until_ns - now) / 1'000'000 + 1, sleep_ms)), nullptr);
  }
}

Engine::Drive Engine::drive(Call& call, uint64_t timeout_ns) {
  if (inherited()) check_usable();
  const auto start = now_ns();
  const auto until = start + std::min(timeout_ns, slice_ns);
  auto outcome = Drive::interrupted;
  driving_.fetch_add(1, std::memory_order_relaxed);
  while (!call.ready()) {
    if (mutex_.try_lock()) {
      std::unique_lock lock(mutex_, std::adopt_lock);
      if (closed()) break;
      const bool done = drive_locked(call, until, outcome);
      lock.unlock();
      if (done) break;
      for (int i = 0; i < 64 && wanted_.load(std::memory_order_relaxed) != 0; ++i) sched_yield();
    } else {
      // Someone else polls; our answer comes with theirs. Or it is the keeper, who makes way.
      if (now_ns() - start < spin_ns) {
        if (keeping_.exchange(false)) wake();
        sched_yield();
      } else {
        nap(nap_ns);
      }
      if (now_ns() >= until) {
        outcome = Drive::timeout;
        break;
      }
    }
  }
  driving_.fetch_sub(1, std::memory_order_relaxed);
  note_activity();
  if (call.ready()) return Drive::ready;
  return outcome == Drive::timeout && timeout_ns > slice_ns ? Drive::interrupted : outcome;
}

// The program is at work on the node: looks at it only now and then, in case that nobody waits for what comes.
void Engine::stand_back() {
  while (!stopping_.load(std::memory_order_acquire)) {
    const auto idle = now_ns() - active_ns_.load(std::memory_order_relaxed);
    if (driving_.load(std::memory_order_relaxed) == 0 && wanted_.load(std::memory_order_relaxed) == 0) {
      if (idle > recent_ns) return;
      if (idle > static_cast<uint64_t>(nap_ns) && mutex_.try_lock()) {
        const std::lock_guard lock(mutex_, std::adopt_lock);
        if (!closed()) tc_node_poll(node_, nullptr);
        if (any_ready()) return;
      }
    }
    nap(idle < short_naps_for_ns ? nap_ns : long_nap_ns);
  }
}

std::optional<std::vector<CallPtr>> Engine::keep() {
  while (!stopping_.load(std::memory_order_acquire) && !inherited()) {
    stand_back();
    if (!mutex_.try_lock()) {
      nap(nap_ns);
      continue;
    }
    const std::lock_guard lock(mutex_, std::adopt_lock);
    if (closed()) break;
    keeping_.store(true);
    while (wanted_.load(std::memory_order_relaxed) == 0 && driving_.load(std::memory_order_relaxed) == 0 &&
           !stopping_.load(std::memory_order_relaxed)) {
      if (any_ready()) return take_ready();
      // Bounded more tightly while calls wait: one whose deadline passes makes no event.
      tc_node_wait(node_, pending_.load(std::memory_order_relaxed) != 0 ? sleep_ms : keeper_sleep_ms, nullptr);
    }
    keeping_.store(false);
    if (any_ready()) return take_ready();
    note_activity();
  }
  return std::nullopt;
}

void Engine::stop_keeping() {
  if (inherited()) return;
  stopping_.store(true, std::memory_order_release);
  wake();
}

std::vector<CallPtr> Engine::close() {
  if (inherited() || closed()) return {};
  wanted_.fetch_add(1);
  wake();
  const std::lock_guard lock(mutex_);
  wanted_.fetch_sub(1);
  {
    const std::lock_guard waking(waking_);
    if (closed_.exchange(true, std::memory_order_acq_rel)) return {};
  }
  tc_node_free(node_);  // every future is ready after it
  return take_ready();
}

}  // namespace tc::python
