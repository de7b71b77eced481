// SPDX-License-Identifier: Apache-2.0
#include "target/tuner.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/fatal_signals.h"
#include "base/quiet_thread.h"
#include "memory/code_mapping.h"
#include "target/code.h"
#include "wire/abi_names.h"

namespace tc::target {

namespace {

// Compiling is worth less than anything else this node could do.
constexpr int niceness = 10;
// Between two attempts to start the thread.
constexpr uint64_t retry_ns = 1'000'000'000;

}  // namespace

Tuner::~Tuner() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    current_ = nullptr;
  }
  changed_.notify_all();
  thread_.join();
}

void Tuner::start() {
  if (waiting_.empty() || !has_thread()) return;
  {
    const std::lock_guard lock(mutex_);
    queue_.insert(queue_.end(), waiting_.begin(), waiting_.end());
  }
  waiting_.clear();
  changed_.notify_all();
}

// A limit on tasks or memory may leave none. Untuned code runs all the same, and later there may be room.
bool Tuner::has_thread() {
  if (thread_.joinable()) return true;
  const auto now = now_ns();
  if (now < next_try_ns_) return false;
  auto thread = quiet_thread([this] { run(); });
  if (thread) return thread_ = std::move(*thread), true;
  next_try_ns_ = now + retry_ns;
  if (!std::exchange(has_told_, true))
    builder_.warn(fmt::format("code is not compiled for this CPU and stays as it is until a thread can be started: {}",
                              thread.error().message));
  return false;
}

void Tuner::cancel(Code& code) noexcept {
  const auto drop = [&code](std::deque<Code*>& list) {
    if (const auto found = std::ranges::find(list, &code); found != list.end()) list.erase(found);
  };
  drop(waiting_);
  const std::lock_guard lock(mutex_);
  drop(queue_);
  if (current_ == &code) current_ = nullptr;
}

std::vector<Tuner::Finished> Tuner::finished() {
  if (!has_finished_.load(std::memory_order_acquire)) return {};
  const std::lock_guard lock(mutex_);
  has_finished_.store(false, std::memory_order_relaxed);
  return std::exchange(finished_, {});
}

bool Tuner::wait(uint64_t deadline_ms) {
  start();
  if (!waiting_.empty()) return false;
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::milliseconds(deadline_ms), [this] { return queue_.empty() && !busy_; });
}

void Tuner::run() {
  have_alternate_stack();
  (void)pthread_setname_np(pthread_self(), "tc-tuner");
  (void)setpriority(PRIO_PROCESS, 0, niceness);  // of this thread alone, on Linux
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (stop_) return;
    current_ = queue_.front();
    queue_.pop_front();
    busy_ = true;
    tune_or_leave(lock, *current_);
    current_ = nullptr;
    busy_ = false;
    changed_.notify_all();
  }
}

// Where there is no memory, the code stays as it is.
void Tuner::tune_or_leave(std::unique_lock<std::mutex>& lock, Code& code) noexcept try {
  tune(lock, code);
} catch (const std::exception&) {
  if (!lock.owns_lock()) lock.lock();
}

// `code` may be used only while the lock is held and it is the current one.
void Tuner::tune(std::unique_lock<std::mutex>& lock, Code& code) {
  const auto which = code.bundle->find(SliceRole::target, SliceForm::bitcode, host_);
  if (!which) return;
  BitcodeSlice slice(*code.bundle, *which, code.assembly, code.sender);
  slice.variables = code.variables;
  const auto libraries = code.libraries;
  const auto imports = code.bundle->manifest().imports;
  lock.unlock();
  const SymbolResolver resolve = [&](const std::string& symbol) {
    const bool listed = std::ranges::find(imports, symbol) != imports.end();
    return policy_.resolve(symbol, libraries, listed ? Policy::LibraryExports::with : Policy::LibraryExports::without);
  };
  // What cannot be compiled says so below.
  if (!slice.variables.empty() && !builder_.may_exchange(slice).value_or(true)) {
    lock.lock();
    return;
  }
  auto built = builder_.build(slice, Effort::tuned, true, resolve);
  void* const entry = built ? built->symbol(abi_names::main) : nullptr;
  if (entry == nullptr) {
    // A missing plug-in is the same for every ifunc; saying it once is enough.
    const bool same_for_all = !built && built.error().code == TC_ERR_UNSUPPORTED;
    if (!same_for_all || !std::exchange(warned_, true))
      builder_.warn(
          fmt::format("ifunc '{}' is not compiled for this CPU and stays as it is: {}", slice.name,
                      built ? fmt::format("its bitcode has no '{}'", abi_names::main) : built.error().message));
    lock.lock();
    return;
  }
  lock.lock();
  if (current_ != &code) {
    lock.unlock();
    *built = JitCode();  // freeing takes the JIT's lock
    lock.lock();
    return;
  }
  memory::sync_other_threads();
  finished_.push_back({&code, std::move(*built)});  // first: what is entered below is kept
  has_finished_.store(true, std::memory_order_release);
  code.entry.store(reinterpret_cast<EntryPoint>(entry), std::memory_order_release);
  code.tier.store(Tier::tuned, std::memory_order_release);
}

}  // namespace tc::target
