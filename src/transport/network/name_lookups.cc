// SPDX-License-Identifier: Apache-2.0
#include "transport/network/name_lookups.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <mutex>

#include "base/quiet_thread.h"

namespace tc::transport {

// What the threads touch. The mutex guards everything but the first two.
struct NameLookups::Shared {
  struct Lookup {
    uint64_t id;
    std::string host;
    Found found;
  };

  Resolve resolve;
  Fd done_event;  // readable: `done` has some
  std::mutex mutex;
  std::list<Lookup> waiting, running, done;  // lookups move from one to the next, which allocates nothing
  size_t threads = 0;

  // Null: nobody asks for that name now.
  Lookup* under_way(std::string_view host) noexcept {
    for (auto* const list : {&waiting, &running})
      if (const auto found = std::ranges::find(*list, host, &Lookup::host); found != list->end()) return &*found;
    return nullptr;
  }
};

NameLookups::NameLookups(Poller& poller, Resolve resolve)
    : poller_(poller), resolve_(resolve ? std::move(resolve) : look_up) {}

NameLookups::~NameLookups() {
  if (shared_ == nullptr) return;
  poller_.remove(shared_->done_event);
  const std::scoped_lock lock(shared_->mutex);
  shared_->waiting.clear();  // so each thread ends with the name that it has
}

Status NameLookups::open() {
  auto made = std::make_shared<Shared>();
  made->resolve = resolve_;
  made->done_event = Fd(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!made->done_event) return fail(TC_ERR_LIMIT, "there is no descriptor to resolve names: {}", system_words(errno));
  TC_CHECK(poller_.add(made->done_event, *this, EPOLLIN));
  shared_ = std::move(made);
  return {};
}

Status NameLookups::start(const std::string& host, Client& client) {
  if (shared_ == nullptr) TC_CHECK(open());
  TC_CHECK(enqueue(host, client));
  const std::scoped_lock lock(shared_->mutex);
  if (shared_->waiting.empty() || shared_->threads == most_running) return {};
  try {
    quiet_thread([shared = shared_] { run(shared); }).detach();
    ++shared_->threads;
  } catch (const std::exception& problem) {
    if (shared_->threads != 0) return {};  // one of those gets to it
    shared_->waiting.clear();              // it was the only one
    clients_.pop_back();
    return fail(TC_ERR_LIMIT, "there is no thread to resolve the host name '{}': {}", host, problem.what());
  }
  return {};
}

Status NameLookups::enqueue(const std::string& host, Client& client) {
  clients_.reserve(clients_.size() + 1);
  const std::scoped_lock lock(shared_->mutex);
  const auto* lookup = shared_->under_way(host);
  if (lookup == nullptr) {
    if (shared_->waiting.size() == most_waiting)
      return fail(TC_ERR_LIMIT, "{} host names wait to be resolved, so '{}' cannot wait too", most_waiting, host);
    lookup = &shared_->waiting.emplace_back(++last_lookup_, host, Found());
  }
  clients_.push_back({&client, lookup->id});
  return {};
}

void NameLookups::cancel(const Client& client) noexcept {
  const auto found = std::ranges::find(clients_, &client, &Waiting::client);
  if (found == clients_.end()) return;
  const auto lookup = found->lookup;
  clients_.erase(found);
  if (std::ranges::find(clients_, lookup, &Waiting::lookup) != clients_.end()) return;
  const std::scoped_lock lock(shared_->mutex);
  shared_->waiting.remove_if([&](const Shared::Lookup& waiting) { return waiting.id == lookup; });
}

void NameLookups::run(const std::shared_ptr<Shared>& shared) noexcept {
  std::unique_lock lock(shared->mutex);
  while (!shared->waiting.empty()) {
    const auto lookup = shared->waiting.begin();
    shared->running.splice(shared->running.end(), shared->waiting, lookup);
    lock.unlock();
    try {
      lookup->found = shared->resolve(lookup->host);
    } catch (const std::exception&) {
      lookup->found = std::unexpected(Error{TC_ERR_NO_MEMORY, "no memory"});  // short: it allocates nothing
    }
    lock.lock();
    shared->done.splice(shared->done.end(), shared->running, lookup);
    const uint64_t one = 1;
    (void)!::write(shared->done_event.get(), &one, sizeof one);
  }
  --shared->threads;
}

// A client that is told may start another lookup, or cancel that of another client. So they are told one by one.
void NameLookups::on_ready(uint32_t) noexcept {
  uint64_t count = 0;
  (void)!::read(shared_->done_event.get(), &count, sizeof count);
  std::list<Shared::Lookup> done;
  {
    const std::scoped_lock lock(shared_->mutex);
    done.swap(shared_->done);
  }
  for (const auto& lookup : done)
    for (;;) {
      const auto next = std::ranges::find(clients_, lookup.id, &Waiting::lookup);
      if (next == clients_.end()) break;
      auto* const client = next->client;
      clients_.erase(next);
      client->on_addresses(lookup.found);
    }
}

}  // namespace tc::transport
