// SPDX-License-Identifier: Apache-2.0
#include "node/future.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/clock.h"
#include "base/no_memory.h"
#include "base/random.h"

namespace tc::node {

namespace {
constexpr size_t failures_remembered = 64;
}

std::string Future::what() const {
  const std::string_view where = peer != nullptr ? std::string_view(*peer) : "this node";
  return ifunc != nullptr ? fmt::format("ifunc '{}' on {}", ifunc->name(), where)
                          : fmt::format("the statistics of {}", where);
}

uint64_t FutureTable::next_token() {
  while (true) {
    if (drawn_ == random_.size()) {
      drawn_ = 0;
      random_bytes(std::as_writable_bytes(std::span(random_)));
    }
    if (const auto token = random_[drawn_++]; token != 0 && !waiting_.contains(token)) return token;
  }
}

uint64_t FutureTable::add(std::shared_ptr<Future> future, FuturesOfLink& of_link) {
  auto& added = *future;
  const auto token = next_token();
  added.token = token;
  if (added.deadline_ns != 0) by_deadline_.prepare();
  waiting_.emplace(token, std::move(future));
  if (added.deadline_ns != 0) by_deadline_.add(added);
  of_link.add(added);
  return token;
}

bool FutureTable::complete(const wire::Reply& reply, PooledBuffer memory) {
  const auto found = waiting_.find(reply.token);
  if (found == waiting_.end()) return false;
  auto& future = *found->second;
  future.status = reply.status;
  future.code = reply.code;
  future.node_id = reply.node_id;
  future.message = reply.message;
  if (reply.status != TC_OK && reply.message.empty())
    future.message = fmt::format("{}: {}, and no more was said", future.what(), status_name(reply.status));
  if (memory) {
    memory.hand_over();
    future.memory = std::move(memory);
    future.bytes = reply.bytes;
  } else {
    future.copy.assign(reply.bytes.begin(), reply.bytes.end());
    future.bytes = future.copy;
  }
  make_ready(future);
  waiting_.erase(found);
  return true;
}

// The waiting thread gets the status, if need be without the message.
void FutureTable::settle(Future& future, const Error& error) noexcept {
  future.status = error.code;
  try {
    future.message = fmt::format("{}: {}", future.what(), error.message);
  } catch (const std::bad_alloc&) {
    future.message = "no memory";
  }
  make_ready(future);
}

void FutureTable::forget(Future& future) {
  remove_from_lists(future);
  waiting_.erase(future.token);
  if (future.notify != nullptr && future.ready.load(std::memory_order_relaxed))
    to_notify_[future.notify_index] = nullptr;
  if (future.will_notify.exchange(false)) --notifiable_;
  future.notify = nullptr;
}

void FutureTable::cancel(Future& future) noexcept {
  settle(future, error_in_any_case(TC_ERR_CANCELED, "the call was canceled here; it may have run in part"));
  waiting_.erase(uint64_t{future.token});
}

void FutureTable::notify_when_ready(Future& future, void (*notify)(void*) noexcept, void* context) {
  to_notify_.reserve(to_notify_.size() + notifiable_ + 1);
  ++notifiable_;
  future.notify = notify;
  future.context = context;
  future.will_notify.store(true, std::memory_order_release);
}

void FutureTable::notify_ready() noexcept {
  for (size_t i = 0; i < to_notify_.size(); ++i) {  // more may be added meanwhile
    if (to_notify_[i] == nullptr) continue;
    const auto future = to_notify_[i]->shared_from_this();  // its owner may free it meanwhile
    std::exchange(future->notify, nullptr)(future->context);
    if (future->will_notify.exchange(false, std::memory_order_acq_rel)) --notifiable_;
  }
  to_notify_.clear();
}

void FutureTable::fail_those(const FuturesOfLink& of_link, const Error& error) noexcept {
  while (Future* const future = of_link.first()) {
    settle(*future, error);
    waiting_.erase(uint64_t{future->token});  // a copy: the future may go with it
  }
}

void FutureTable::record_peer_failure(uint32_t node_id, std::string label) {
  ++failures_known_;
  peer_failures_.push_back({node_id, std::move(label)});
  if (peer_failures_.size() > failures_remembered) peer_failures_.pop_front();
}

// "node 3 (name) and node 4 (name)"; empty when nobody did.
std::string FutureTable::failed_since(const Future& future) const {
  std::set<std::string_view> names;  // each peer of the node tells of its failure
  if (failures_known_ <= future.failures_before) return {};
  const auto since = std::min<uint64_t>(failures_known_ - future.failures_before, peer_failures_.size());
  for (auto failure = peer_failures_.end() - static_cast<ptrdiff_t>(since); failure != peer_failures_.end(); ++failure)
    names.insert(failure->label);
  return fmt::format("{}", fmt::join(names, " and "));
}

void FutureTable::fail_lost(uint64_t token) {
  const auto found = waiting_.find(token);
  if (found == waiting_.end()) return;
  const Error why{TC_ERR_DISCONNECTED,
                  fmt::format("{} died while the call was there or on its way there; it may have run in part",
                              failed_since(*found->second))};
  const auto future = std::move(found->second);
  waiting_.erase(found);
  future->node_id = peer_failures_.back().node_id;
  settle(*future, why);
}

std::vector<uint64_t> FutureTable::maybe_lost() const {
  std::vector<uint64_t> tokens;
  for (const auto& [token, future] : waiting_)
    if (future->failures_before < failures_known_) tokens.push_back(token);
  return tokens;
}

// What is due ends in time, if need be without the sentence.
Error FutureTable::too_late(const Future& future) const noexcept try {
  const auto died = failed_since(future);
  const std::string late = future.ifunc != nullptr ? "no answer within the call's deadline; it may still run"
                                                   : "no answer within the deadline";
  return {TC_ERR_TIMEOUT, late + (died.empty() ? died : fmt::format(" ({} died meanwhile)", died))};
} catch (const std::bad_alloc&) {
  return {TC_ERR_TIMEOUT, "no memory"};
}

void FutureTable::fail_all(const Error& error) {
  for (auto& [token, future] : waiting_) settle(*future, error);
  waiting_.clear();
}

size_t FutureTable::expire(uint64_t now_ns) {
  return by_deadline_.expire(now_ns, [&](Future& future) {
    settle(future, too_late(future));
    waiting_.erase(uint64_t{future.token});
  });
}

// ---- Deadlines

void DeadlineWheel::add(Future& future) noexcept {
  const auto deadline = future.deadline_ns;
  slot_of(std::max(tick_of(deadline), tick_)).add(future);  // one that is over already: with the next expire()
  if (next_ns_ == 0 || deadline < next_ns_) next_ns_ = deadline;
}

size_t DeadlineWheel::expire(uint64_t now_ns, FunctionRef<void(Future&)> end) {
  if (next_ns_ == 0 || now_ns < next_ns_) return 0;
  size_t seen = 0;
  const auto first = std::max(tick_, tick_of(next_ns_)), now = tick_of(now_ns);
  for (auto tick = first; tick <= std::min(now, first + slot_count - 1); ++tick)
    for (Future *future = slot_of(tick).first(), *next; future != nullptr; future = next, ++seen) {
      next = Slot::behind(*future);
      if (future->deadline_ns <= now_ns) end(*future);
    }
  tick_ = now;
  return seen + find_next();
}

// Slot by slot, from now on: the first deadline of this turn of the wheel is the next one of all. Where there is none, it is
// the earliest of a later turn.
size_t DeadlineWheel::find_next() noexcept {
  size_t seen = 0;
  next_ns_ = 0;
  for (auto tick = tick_; tick < tick_ + slot_count; ++tick) {
    for (auto* future = slot_of(tick).first(); future != nullptr; future = Slot::behind(*future), ++seen)
      if (next_ns_ == 0 || future->deadline_ns < next_ns_) next_ns_ = future->deadline_ns;
    if (next_ns_ != 0 && tick_of(next_ns_) <= tick) break;
  }
  return seen;
}

}  // namespace tc::node
