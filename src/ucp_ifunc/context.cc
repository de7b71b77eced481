// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/context.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <unordered_map>

#include "base/clock.h"
#include "base/log_format.h"
#include "base/log_sink.h"
#include "ucp_ifunc/exports.h"

namespace tc::ucp {

namespace {

std::shared_ptr<spdlog::logger> make_logger() {
  auto logger = std::make_shared<spdlog::logger>("ucp_ifunc", std::make_shared<LogSink>(STDERR_FILENO));
  const char* const level = std::getenv("UCP_IFUNC_LOG");
  logger->set_level(level != nullptr ? spdlog::level::from_str(level) : spdlog::level::warn);
  const auto format = log_format_of(std::nullopt, STDERR_FILENO, std::getenv("JOURNAL_STREAM"));
  logger->set_formatter(std::make_unique<LogFormatter>(format));
  return logger;
}

struct Table {
  std::mutex mutex;
  std::unordered_map<ucp_context_h, std::unique_ptr<ContextState>> states;
  std::atomic<uint64_t> generation{1};  // changes whenever a state goes
  std::atomic<uint32_t> nonce{static_cast<uint32_t>(now_ns() * 0x9e3779b97f4a7c15 >> 32)};
};

// Never destroyed: threads and injected code may use it until the process ends.
Table& table() {
  static Table& the_table = *new Table;
  return the_table;
}

// What a thread asked for last.
struct Recent {
  ucp_context_h context = nullptr;
  ContextState* state = nullptr;
  uint64_t generation = 0;
};
constinit thread_local Recent recent [[gnu::tls_model("initial-exec")]];

}  // namespace

ContextState::ContextState() : ContextState(make_logger()) {}

ContextState::ContextState(std::shared_ptr<spdlog::logger> log)
    : receiver(std::getenv("UCP_IFUNC_ALLOW"), log), log_(std::move(log)) {
  export_api(receiver.policy());
  if (auto set = set_up_exports(receiver.policy(), std::getenv("UCP_IFUNC_ALLOW_EXPORT")); !set)
    log_->warn("UCP_IFUNC_ALLOW_EXPORT: {}", set.error().message);
}

Result<Ifunc*> ContextState::add(const std::string& name, bool bitcode, const Source& make) {
  const std::lock_guard lock(mutex_);
  auto& ifunc = ifuncs_[name];
  if (ifunc == nullptr) {
    auto made = make();
    if (made) {
      auto handle = make_ifunc(name, *made, bitcode);
      if (handle) {
        ifunc = std::move(*handle);
      } else {
        made = context(fmt::format("ifunc '{}'", name), std::move(handle).error());
      }
    }
    if (!made) {
      ifuncs_.erase(name);
      return tc::fail(std::move(made).error());
    }
  }
  ++ifunc->registrations;
  return ifunc.get();
}

void ContextState::remove(Ifunc& ifunc) {
  const std::lock_guard lock(mutex_);
  const auto found = ifuncs_.find(ifunc.name);
  if (found == ifuncs_.end() || found->second.get() != &ifunc || --ifunc.registrations != 0) return;
  std::erase_if(deregistered_, [](const auto& gone) { return gone.expired(); });
  deregistered_.push_back(found->second);
  ifuncs_.erase(found);
}

void ContextState::forget(ucp_ep_h ep) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, ifunc] : ifuncs_) ifunc->given.remove(ep);
  for (const auto& gone : deregistered_)
    if (const auto ifunc = gone.lock()) ifunc->given.remove(ep);
}

void ContextState::note_worker(ucp_worker_h worker) {
  const std::lock_guard lock(mutex_);
  workers_.emplace_back(worker, std::this_thread::get_id());
}

void ContextState::forget_worker(ucp_worker_h worker) {
  const std::lock_guard lock(mutex_);
  std::erase_if(workers_, [worker](const auto& known) { return known.first == worker; });
}

void ContextState::progress_own_workers() {
  std::vector<ucp_worker_h> own;  // progress may run ifuncs, which may come back here
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [worker, thread] : workers_)
      if (thread == std::this_thread::get_id()) own.push_back(worker);
  }
  for (auto* const worker : own) ucp_worker_progress(worker);
}

AmReceiver* ContextState::add_am_receiver(ucp_worker_h worker, void* target_args) {
  const std::lock_guard lock(mutex_);
  am_receivers_.emplace_back(new AmReceiver{this, worker, target_args});
  return am_receivers_.back().get();
}

void ContextState::report(const Error& error) noexcept {
  constexpr uint64_t each = 100, then_one_in = 10'000;
  const auto number = failures_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (number > each && number % then_one_in != 0) return;
  log_->warn("{}", error.message);
  if (number == each) log_->warn("from now on one of {} such lines is written", then_one_in);
}

ContextState& state_of(ucp_context_h context) {
  auto& all = table();
  if (recent.context == context && recent.generation == all.generation.load(std::memory_order_acquire)) [[likely]]
    return *recent.state;
  const std::lock_guard lock(all.mutex);
  auto& state = all.states[context];
  if (state == nullptr) state = std::make_unique<ContextState>();
  recent = {context, state.get(), all.generation.load(std::memory_order_relaxed)};
  return *state;
}

void release_state(ucp_context_h context) {
  auto& all = table();
  std::unique_ptr<ContextState> gone;
  const std::lock_guard lock(all.mutex);
  const auto found = all.states.find(context);
  if (found == all.states.end()) return;
  all.generation.fetch_add(1, std::memory_order_release);
  gone = std::move(found->second);
  all.states.erase(found);
}

void for_each_state(const std::function<void(ContextState&)>& visit) {
  auto& all = table();
  const std::lock_guard lock(all.mutex);
  for (const auto& [context, state] : all.states) visit(*state);
}

uint32_t next_nonce() noexcept { return table().nonce.fetch_add(1, std::memory_order_relaxed); }

}  // namespace tc::ucp
