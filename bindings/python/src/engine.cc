// SPDX-License-Identifier: Apache-2.0
#include "engine.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

namespace tc::python {

namespace {

using std::chrono::steady_clock;

// wait() returns after this, for signals.
constexpr uint32_t wait_ms = 50;
// So long a thread in wait() collects the answers to other calls too, which come soon as a rule. Later the keeper does.
constexpr uint32_t collecting_ms = 1;
// A flush lets others use the endpoint after this.
constexpr uint32_t flush_ms = 20;
constexpr int polls_for_room = 64;

// Rounded up.
uint32_t in_ms(uint64_t ns, uint32_t most) noexcept {
  return static_cast<uint32_t>(std::min<uint64_t>(ns / 1'000'000 + (ns % 1'000'000 != 0), most));
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

Call::Call(Engine& engine, tc_future_t* future, void* owner) noexcept
    : owner(owner), future_(future), engine_(engine), fork_(forks().load()) {}

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
  if (const auto status = tc_node_start_shared_progress(node_); status != TC_OK) {
    const Failure failure(status, tc_error_message());
    tc_node_free(node_);
    throw failure;
  }
}

Engine::~Engine() {
  if (inherited()) return;  // the parent's connections must not be closed by its child
  stop_keeping();
  close();
  (void)collect();
}

bool Engine::inherited() const noexcept { return fork_ != forks().load(std::memory_order_relaxed); }

void Engine::check_usable() const {
  if (inherited())
    throw Failure(TC_ERR_CLOSED, std::string("this node belongs to the process that made it, and this one was forked "
                                             "from it; ") +
                                     start_afresh);
  if (closed()) throw Failure(TC_ERR_CLOSED, "this node is closed");
}

// For a function that does not wait.
std::unique_lock<std::mutex> Engine::enter() {
  check_usable();
  std::unique_lock lock(mutex_);
  check_usable();
  return lock;
}

// For one that waits: the node does not end meanwhile.
std::shared_lock<std::shared_mutex> Engine::enter_to_wait() {
  check_usable();
  std::shared_lock lock(waits_);
  check_usable();
  return lock;
}

std::string Engine::address() {
  const auto entry = enter();
  return tc_node_address(node_);
}

uint64_t Engine::stat(const std::string& name) {
  const auto entry = enter();
  uint64_t value = 0;
  check(tc_node_stat(node_, name.c_str(), &value));
  return value;
}

void Engine::reload_keys() {
  const auto entry = enter();
  check(tc_node_reload_keys(node_));
}

void Engine::expose(const std::string& name, void* data, size_t size) {
  const auto stay = enter_to_wait();
  check(tc_node_expose(node_, name.c_str(), data, size));
}

size_t Engine::connect(const std::string& address, uint32_t timeout_ms) {
  const auto stay = enter_to_wait();
  tc_endpoint_t* endpoint = nullptr;
  check(tc_node_connect(node_, address.c_str(), timeout_ms, &endpoint));
  tc_endpoint_set_timeout(endpoint, 0);  // a thread that waits for room gives up its locks in between
  const std::lock_guard lock(mutex_);
  endpoints_.emplace_back(endpoint);
  return endpoints_.size() - 1;
}

// With `mutex_`.
tc_endpoint_t* Engine::endpoint_at(size_t index) {
  if (index >= endpoints_.size() || endpoints_[index].handle == nullptr)
    throw Failure(TC_ERR_CLOSED, "this endpoint is closed");
  return endpoints_[index].handle;
}

void Engine::disconnect(size_t endpoint, uint32_t timeout_ms) {
  const auto stay = enter_to_wait();
  std::unique_lock lock(mutex_);
  auto* const handle = endpoint_at(endpoint);
  endpoints_[endpoint].handle = nullptr;
  auto& flushing = endpoints_[endpoint].flushing;
  lock.unlock();
  const std::lock_guard nobody_flushes(flushing);
  check(tc_endpoint_free(handle, timeout_ms));
}

std::string Engine::peer(size_t endpoint) {
  const auto entry = enter();
  return tc_endpoint_peer(endpoint_at(endpoint));
}

std::string Engine::transport(size_t endpoint) {
  const auto entry = enter();
  return tc_endpoint_transport(endpoint_at(endpoint));
}

tc_status_t Engine::endpoint_status(size_t endpoint) {
  const auto entry = enter();
  return tc_endpoint_status(endpoint_at(endpoint));
}

size_t Engine::register_ifunc(std::span<const std::byte> bundle) {
  const auto entry = enter();
  tc_ifunc_t* ifunc = nullptr;
  check(tc_ifunc_register_memory(node_, bundle.data(), bundle.size(), &ifunc));
  ifuncs_.push_back(ifunc);
  return ifuncs_.size() - 1;
}

MessagePtr Engine::create_message(CreateMessage create, size_t ifunc, const void* source_args, size_t size) {
  const auto entry = enter();
  if (ifunc >= ifuncs_.size()) throw Failure(TC_ERR_NOT_FOUND, "no such ifunc");
  tc_message_t* message = nullptr;
  check(create(ifuncs_[ifunc], source_args, size, &message));
  return MessagePtr(message);
}

MessagePtr Engine::make_message(size_t ifunc, const void* source_args, size_t size) {
  return create_message(tc_message_create, ifunc, source_args, size);
}

MessagePtr Engine::make_message_in_place(size_t ifunc, const void* source_args, size_t size) {
  return create_message(tc_message_create_in_place, ifunc, source_args, size);
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
  const auto entry = enter();
  tc_future_t* future = nullptr;
  const auto status = tc_endpoint_call(endpoint_at(endpoint), &message, deadline_ms, &future);
  if (status == TC_ERR_BUSY) return nullptr;
  check(status);
  auto call = std::make_shared<Call>(*this, future, owner);
  call->self_ = call;
  const auto note = [](tc_future_t*, void* context) {
    auto& ready = *static_cast<Call*>(context);
    ready.engine_.note_ready(ready);
  };
  if (tc_future_on_ready(future, note, call.get()) != TC_OK) {
    call->self_ = nullptr;
    throw Failure(TC_ERR_NO_MEMORY, tc_error_message());
  }
  return call;
}

bool Engine::try_send(size_t endpoint, tc_message_t& message) {
  const auto entry = enter();
  const auto status = tc_endpoint_send(endpoint_at(endpoint), &message);
  if (status == TC_ERR_BUSY) return false;
  check(status);
  return true;
}

void Engine::make_room() {
  {
    const auto entry = enter();
    for (int i = 0; i < polls_for_room; ++i) check(tc_node_poll(node_, nullptr));
  }
  sched_yield();
}

void Engine::flush(size_t endpoint, uint32_t timeout_ms) {
  // In slices: a flush that timed out has lost nothing.
  const auto until = steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
    const auto stay = enter_to_wait();
    std::unique_lock lock(mutex_);
    auto* const handle = endpoint_at(endpoint);
    auto& flushing = endpoints_[endpoint].flushing;
    lock.unlock();
    const std::lock_guard kept(flushing);
    const auto status = tc_endpoint_flush(handle, static_cast<uint32_t>(std::clamp<int64_t>(left, 0, flush_ms)));
    if (status == TC_OK) return;
    if (status != TC_ERR_TIMEOUT || left <= 0) throw Failure(status, tc_error_message());
  }
}

// ---- Answers ------------------------------------------------------------------------------------------------

// On the thread that polls, which has the node's lock.
void Engine::note_ready(Call& call) noexcept {
  if (call.claimed()) return void(std::exchange(call.self_, nullptr));  // by a thread that saw the answer before us
  call.next_ = ready_.load();
  while (!ready_.compare_exchange_weak(call.next_, &call)) {
  }
  // A thread that will collect looks at the list after it has said that it will not any more.
  if (call.waiters_.load() == 0 && collectors_.load() == 0) call_keeper();
}

std::vector<CallPtr> Engine::collect() {
  std::vector<CallPtr> taken;
  if (inherited() || !has_ready()) return taken;
  for (auto* call = ready_.exchange(nullptr); call != nullptr;) {
    auto self = std::exchange(call->self_, nullptr);
    call = call->next_;
    if (self->claim()) taken.push_back(std::move(self));
  }
  std::ranges::reverse(taken);
  return taken;
}

void Engine::wait(Call& call, uint64_t timeout_ns) {
  if (inherited()) check_usable();
  call.waiters_.fetch_add(1);
  collectors_.fetch_add(1);
  wait_once(call, in_ms(timeout_ns, collecting_ms));
  collectors_.fetch_sub(1);
  const bool is_over = timeout_ns <= uint64_t{collecting_ms} * 1'000'000;
  if (!is_over && !call.ready() && !has_ready()) wait_once(call, in_ms(timeout_ns, wait_ms));
  call.waiters_.fetch_sub(1);
}

// Of a node that closes, every call is about to be ready.
void Engine::cancel(Call& call) noexcept {
  if (inherited() || closed()) return;
  const std::shared_lock stay(waits_);
  if (!closed()) (void)tc_future_cancel(call.future());
}

void Engine::wait_once(const Call& call, uint32_t timeout_ms) {
  if (!closed()) {
    const std::shared_lock stay(waits_);
    if (!closed()) return void(tc_future_wait(call.future(), timeout_ms));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // close() is about to fail the call
}

void Engine::call_keeper() noexcept {
  {
    const std::lock_guard lock(keeper_mutex_);
    keeper_has_work_ = true;
  }
  keeper_called_.notify_one();
}

bool Engine::keep() {
  if (inherited()) return false;
  std::unique_lock lock(keeper_mutex_);
  keeper_called_.wait(lock, [this] { return keeper_has_work_ || stopping_; });
  keeper_has_work_ = false;
  return !stopping_;
}

void Engine::stop_keeping() {
  if (inherited()) return;
  {
    const std::lock_guard lock(keeper_mutex_);
    stopping_ = true;
  }
  keeper_called_.notify_one();
}

void Engine::close() {
  if (inherited()) return;
  {
    const std::lock_guard lock(mutex_);
    if (closed_.exchange(true, std::memory_order_acq_rel)) return;
  }
  const std::lock_guard nobody_waits(waits_);
  tc_node_free(node_);  // every call is ready after it
}

}  // namespace tc::python
