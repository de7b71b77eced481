// SPDX-License-Identifier: Apache-2.0
#include "node/first_contacts.h"

#include <utility>

#include "base/quiet_thread.h"

namespace tc::node {

FirstContacts::~FirstContacts() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

Result<std::optional<trust::PublicKey>> FirstContacts::find(std::string_view address) const {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto found = new_.find(address); found != new_.end()) return std::optional(found->second);
  }
  if (!file_) return std::nullopt;
  return file_->find(address);
}

void FirstContacts::remember(const std::string& address, const trust::PublicKey& key, Told told) {
  if (auto started = start(); !started) {
    new_.insert_or_assign(address, key);  // nobody else is there
    return told(started);
  }
  const std::scoped_lock lock(mutex_);
  new_.insert_or_assign(address, key);
  waiting_.push_back({address, key, std::move(told)});
  changed_.notify_one();
}

Status FirstContacts::start() {
  if (!file_) return fail(TC_ERR_NOT_FOUND, "neither THREECHAINS_HOME nor HOME is set");
  if (thread_.joinable()) return {};
  auto thread = quiet_thread([this] { run(); });
  if (!thread) return context("there is no thread that could write it", std::move(thread).error());
  thread_ = std::move(*thread);
  return {};
}

void FirstContacts::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const auto contact = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const auto kept = write(contact);
    contact.told(kept);
    lock.lock();
  }
}

Status FirstContacts::write(const Contact& contact) try {
  auto kept = file_->remember(contact.address, contact.key);
  const bool is_conflict = !kept && kept.error().code == TC_ERR_BUSY;
  if (!kept && !is_conflict) return kept;
  const std::scoped_lock lock(mutex_);
  new_.erase(contact.address);
  if (is_conflict) {
    conflicts_.push_back(contact.key);
    has_conflicts_.store(true, std::memory_order_release);
  }
  return kept;
} catch (const std::bad_alloc&) {
  return fail(TC_ERR_NO_MEMORY, "no memory");
}

std::vector<trust::PublicKey> FirstContacts::take_conflicts() {
  const std::scoped_lock lock(mutex_);
  has_conflicts_.store(false, std::memory_order_relaxed);
  return std::exchange(conflicts_, {});
}

}  // namespace tc::node
