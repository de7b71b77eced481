// SPDX-License-Identifier: Apache-2.0
#include "node/future.h"

#include <sys/random.h>

#include <algorithm>

#include "base/clock.h"

namespace tc::node {

uint64_t FutureTable::next_token() {
  while (true) {
    if (drawn_ == random_.size()) {
      drawn_ = 0;
      if (::getrandom(random_.data(), sizeof random_, 0) != sizeof random_)
        std::ranges::generate(random_, [n = now_ns()]() mutable { return n++; });
    }
    if (const auto token = random_[drawn_++]; token != 0 && !waiting_.contains(token)) return token;
  }
}

uint64_t FutureTable::add(std::shared_ptr<Future> future) {
  const auto token = next_token();
  waiting_.emplace(token, std::move(future));
  return token;
}

bool FutureTable::complete(const wire::Reply& reply) {
  const auto found = waiting_.find(reply.token);
  if (found == waiting_.end()) return false;
  auto& future = *found->second;
  future.status = reply.status;
  future.code = reply.code;
  future.node_id = reply.node_id;
  future.message = reply.message;
  if (reply.status != TC_OK && reply.message.empty())
    future.message = fmt::format("{}: {}, and no more was said", future.what, status_name(reply.status));
  future.bytes.assign(reply.bytes.begin(), reply.bytes.end());
  future.ready.store(true, std::memory_order_release);
  waiting_.erase(found);
  return true;
}

void FutureTable::settle(Future& future, const Error& error) {
  future.status = error.code;
  future.message = future.what.empty() ? error.message : fmt::format("{}: {}", future.what, error.message);
  future.ready.store(true, std::memory_order_release);
}

void FutureTable::forget(const Future& future) {
  std::erase_if(waiting_, [&](const auto& entry) { return entry.second.get() == &future; });
}

void FutureTable::fail_link(const Link& link, const Error& error) {
  std::erase_if(waiting_, [&](const auto& entry) {
    if (entry.second->link != &link) return false;
    settle(*entry.second, error);
    return true;
  });
}

void FutureTable::fail_all(const Error& error) {
  for (auto& [token, future] : waiting_) settle(*future, error);
  waiting_.clear();
}

void FutureTable::expire(uint64_t now_ns) {
  std::erase_if(waiting_, [&](const auto& entry) {
    auto& future = *entry.second;
    if (future.deadline_ns == 0 || now_ns < future.deadline_ns) return false;
    settle(future, Error{TC_ERR_TIMEOUT, "no answer within the call's deadline; it may still run"});
    return true;
  });
}

}  // namespace tc::node
