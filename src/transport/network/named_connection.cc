// SPDX-License-Identifier: Apache-2.0
#include "transport/network/named_connection.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <list>
#include <mutex>
#include <new>

#include "base/quiet_thread.h"

namespace tc::transport {

NamedConnection::NamedConnection(Hub& hub, NameLookups& lookups, List& list, std::string address, uint16_t port,
                                 Connect connect)
    : hub_(hub),
      lookups_(lookups),
      list_(list),
      address_(std::move(address)),
      port_(port),
      connect_(std::move(connect)),
      deadline_ns_(now_ns() + SocketConnection::greeting_ns) {}

NamedConnection::~NamedConnection() {
  lookups_.cancel(*this);
  std::erase(list_, this);
}

Result<std::unique_ptr<NamedConnection>> NamedConnection::start(Hub& hub, NameLookups& lookups, List& list,
                                                                std::string address, HostAndPort where,
                                                                Connect connect) {
  std::unique_ptr<NamedConnection> made(
      new NamedConnection(hub, lookups, list, std::move(address), where.port, std::move(connect)));
  list.push_back(made.get());
  TC_CHECK(lookups.start(where.host, *made));
  hub.mark_changed();
  return made;
}

void NamedConnection::on_addresses(const NameLookups::Found& found) noexcept {
  try {
    if (auto connected = connect_to(found); !connected) lose(std::move(connected).error());
  } catch (const std::bad_alloc&) {
    lose(Error{TC_ERR_NO_MEMORY, "no memory"});  // short: it allocates nothing
  }
}

// The peer has to greet in what is left of the time.
Status NamedConnection::connect_to(const NameLookups::Found& found) {
  if (!found) return fail(found.error());
  auto addresses = *found;
  for (auto& address : addresses) address.set_port(port_);
  TC_ASSIGN(inner_, connect_(addresses));
  inner_->set_owner(owner());
  inner_->must_greet_by(deadline_ns_);
  std::erase(list_, this);
  connect_ = nullptr;
  deadline_ns_ = 0;
  return {};
}

void NamedConnection::lose(Error reason) noexcept {
  reason_ = std::move(reason);
  deadline_ns_ = 0;
  lookups_.cancel(*this);
  hub_.mark_changed();
}

void NamedConnection::check_deadline(uint64_t now) noexcept {
  if (deadline_ns_ == 0 || now < deadline_ns_) return;
  try {
    lose(Error{TC_ERR_TIMEOUT, fmt::format("its host name was not resolved within {} s",
                                           SocketConnection::greeting_ns / 1'000'000'000)});
  } catch (const std::bad_alloc&) {
    lose(Error{TC_ERR_NO_MEMORY, "no memory"});
  }
}

bool NamedConnection::deliver_loss() noexcept {
  if (!reason_) return false;
  const auto reason = std::move(*reason_);
  reason_.reset();
  hub_.events.on_lost(*this, reason);
  return true;
}

// Ends the connection on our side: the owner knows, so on_lost() is not called.
void NamedConnection::end_silently() noexcept {
  lookups_.cancel(*this);
  reason_.reset();
  deadline_ns_ = 0;
  hub_.mark_changed();
}

Status NamedConnection::open(ByteView hello) {
  if (inner_ == nullptr) return fail(TC_ERR_DISCONNECTED, "nothing connects to {} yet", address_);
  return inner_->open(hello);
}

void NamedConnection::refuse(const Error& why) noexcept { inner_ != nullptr ? inner_->refuse(why) : end_silently(); }

void NamedConnection::close() noexcept { inner_ != nullptr ? inner_->close() : end_silently(); }

void NamedConnection::drop() noexcept { inner_ != nullptr ? inner_->drop() : end_silently(); }

void NamedConnection::set_paused(bool paused) noexcept {
  if (inner_ != nullptr) inner_->set_paused(paused);
}

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
  auto thread = quiet_thread([shared = shared_] { run(shared); });
  if (thread) {
    thread->detach();
    ++shared_->threads;
  } else if (shared_->threads == 0) {  // else one of those gets to it
    shared_->waiting.clear();          // it was the only one
    clients_.pop_back();
    return fail(TC_ERR_LIMIT, "there is no thread to resolve the host name '{}': {}", host, thread.error().message);
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
