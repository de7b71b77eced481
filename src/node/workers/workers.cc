// SPDX-License-Identifier: Apache-2.0
#include "node/workers/workers.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "base/fatal_signals.h"
#include "base/quiet_thread.h"
#include "node/config.h"
#include "transport/transport.h"

namespace tc::node {

namespace {

// The node's thread runs code that takes at most so long where no other thread can: longer, and others would notice.
constexpr uint32_t longest_here_us = 100;
// Between two lines of the log that say what the end of a node waits for.
constexpr uint64_t word_step_ns = 1'000'000'000;

}  // namespace

Workers::Workers(const Common& common, HandedCalls& calls, const target::IfuncHost& chief)
    : common_(common), calls_(calls) {
  for (uint32_t i = 1; i < common_.config.threads; ++i)
    workers_.push_back(std::make_unique<Worker>(*this, chief, common));
}

Status Workers::start(transport::Transport& transport) {
  transport_ = &transport;
  calls_.reserve(most_calls());
  ready_.reserve(most_calls());
  mail_.reserve(workers_.size(), most_calls());
  opened_.reserve(workers_.size(), most_calls());
  threads_.reserve(workers_.size());
  for (const auto& worker : workers_) {
    worker->begin();
    auto thread = quiet_thread([this, &one = *worker] { run(one); });
    if (!thread)
      return context(fmt::format("cannot start thread {} of {}", threads_.size() + 2, workers_.size() + 1),
                     std::move(thread).error());
    threads_.push_back(std::move(*thread));
  }
  return {};
}

std::vector<target::Executor*> Workers::executors() noexcept {
  std::vector<target::Executor*> all;
  for (const auto& worker : workers_) all.push_back(&worker->executor());
  return all;
}

// A worker finds its next calls without a wait, also while the node's thread runs one itself.
size_t Workers::most_calls() const noexcept { return 8 * workers_.size(); }

// ---- Handing over

// Ordinary code is handed over for the sake of others, and only to a thread that is free: while it waits for one, other
// ordinary code would wait, too. Concurrent code is handed over so that more of it runs at the same time. Calls of it that
// keep coming would let no thread be free: once ordinary code waits, no more of them are handed over until one is.
Workers::Place Workers::place(const target::Code& code) noexcept {
  if (!code.concurrent && calls_.exclusive_runs()) return Place::later;
  if (code.is_short() || !exist()) return Place::here;
  const bool may_run_here = code.was_long && code.long_us <= longest_here_us;
  if (!code.concurrent && may_run_here) return Place::here;
  if (has_free_thread()) ordinary_waits_ = false;
  if (has_free_thread() || (code.concurrent && may_hand_over_more())) return Place::elsewhere;
  if (may_run_here) return Place::here;
  ordinary_waits_ = ordinary_waits_ || !code.concurrent;
  return Place::later;
}

void Workers::hand_over(std::unique_ptr<HandedCall> handed) {
  auto& call = calls_.add(std::move(handed));
  {
    const std::scoped_lock lock(mutex_);
    ready_.push_back(&call);
  }
  has_work_.notify_one();
}

// ---- The workers' side

void Workers::run(Worker& worker) {
  have_alternate_stack();
  std::unique_lock lock(mutex_);
  while (true) {
    has_work_.wait(lock, [this] { return ends_ || !ready_.empty(); });
    if (ready_.empty()) return;
    auto& handed = *ready_.front();
    ready_.erase(ready_.begin());
    lock.unlock();
    worker.run(handed);
    lock.lock();
    mail_.ended.push_back(&handed);
    notify_node(has_mail_.exchange(true));
  }
}

void Workers::post_reply(HandedCall& handed, ByteView bytes) {
  Bytes copy(bytes.begin(), bytes.end());
  const std::scoped_lock lock(mutex_);
  mail_.replies.push_back({&handed, std::move(copy)});
  notify_node(has_mail_.exchange(true));
}

void Workers::post(Worker& worker, Ask& ask) noexcept {
  const std::scoped_lock lock(mutex_);
  mail_.questions.push_back({&worker, &ask});
  notify_node(has_mail_.exchange(true));
}

void Workers::notify_node(bool had_mail) noexcept {
  if (had_mail) return;
  transport_->wake();
  has_news_.notify_one();
}

// ---- Delivering

void Workers::Mail::reserve(size_t workers, size_t calls) {
  replies.reserve(calls);
  questions.reserve(workers);
  ended.reserve(calls);
}

void Workers::Mail::clear() noexcept {
  replies.clear();
  questions.clear();
  ended.clear();
}

size_t Workers::deliver() {
  if (!has_mail_.load(std::memory_order_relaxed)) return 0;
  {
    const std::scoped_lock lock(mutex_);
    has_mail_.store(false, std::memory_order_relaxed);
    std::swap(mail_, opened_);
  }
  const auto happened = deliver(opened_);
  opened_.clear();
  return happened;
}

// In this order: an ifunc that has replied asks later, if it does, and ends last.
size_t Workers::deliver(Mail& mail) {
  for (const auto& [handed, bytes] : mail.replies) calls_.reply(*handed, bytes);
  for (const auto& question : mail.questions) answer(question);
  for (auto* const handed : mail.ended) calls_.end(*handed);
  return mail.replies.size() + mail.questions.size() + mail.ended.size();
}

void Workers::answer(const Question& question) noexcept {
  auto& ask = *question.ask;
  const CallEffects::Asker asker{ask.call, ask.handed.rights};
  switch (ask.kind) {
    case Ask::Kind::forward: ask.status = calls_.forward(asker, ask.node, ask.payload); break;
    case Ask::Kind::forward_as: ask.status = calls_.forward_as(asker, ask.node, ask.name, ask.payload); break;
    case Ask::Kind::inject: ask.status = calls_.inject(asker, ask.node, ask.name, ask.payload); break;
    case Ask::Kind::touch: ask.status = calls_.may_touch(asker, ask.name) ? TC_OK : TC_ERR_DENIED; break;
  }
  question.worker->on_done(ask);
}

// ---- The end

void Workers::close() noexcept {
  if (threads_.empty()) return;
  while (!wait_for_calls(std::chrono::seconds(1))) {
  }
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  has_work_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
}

bool Workers::wait_for_calls(std::chrono::milliseconds longest) noexcept {
  drop_unbegun([](const HandedCall&) { return true; }, error_in_any_case(TC_ERR_CLOSED, "this node ends"));
  const auto now = now_ns();
  if (next_word_ns_ == 0) next_word_ns_ = now + word_step_ns;
  if (now >= next_word_ns_) {
    next_word_ns_ = now + word_step_ns;
    calls_.say_what_runs();
  }
  const auto until = std::chrono::steady_clock::now() + longest;
  while (calls_.on_threads() != 0) {
    if (deliver() != 0) continue;
    std::unique_lock lock(mutex_);
    if (!has_news_.wait_until(lock, until, [this] { return has_mail_.load(); })) return false;
  }
  return true;
}

void Workers::renew_rights() { drop_unbegun(&HandedCalls::may_have_other_rights, HandedCalls::rights_have_changed()); }

// Calls that wait for a thread and are `chosen` are not run; their callers are told.
void Workers::drop_unbegun(FunctionRef<bool(const HandedCall&)> chosen, const Error& why) noexcept {
  size_t dropped = 0;
  while (auto* const handed = take_unbegun(chosen)) {
    calls_.fail(*handed, why);
    ++dropped;
  }
  if (dropped != 0) common_.log.warn("{} calls are not run: {}", dropped, why.message);
}

HandedCall* Workers::take_unbegun(FunctionRef<bool(const HandedCall&)> chosen) noexcept {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find_if(ready_, [&](const HandedCall* one) { return chosen(*one); });
  if (found == ready_.end()) return nullptr;
  auto* const taken = *found;
  ready_.erase(found);
  return taken;
}

}  // namespace tc::node
