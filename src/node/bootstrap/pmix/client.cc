// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/pmix/client.h"

#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/quiet_thread.h"
#include "node/bootstrap/pmix/session.h"
#include "trust/key_pair.h"

namespace tc::node::bootstrap {

namespace {

// After the deadline: time to ask which nodes are missing.
constexpr auto time_to_tell = std::chrono::seconds(2);

struct Wish {
  Options options;
  Contact self;
  std::optional<uint32_t> id;
  Deadline deadline;
};

// A process has one identity at its launcher, so this is a matter of the process, not of a node: the n-th node of
// each process meets the n-th nodes of the others, and they take turns.
struct Process {
  std::timed_mutex turn;
  uint32_t rounds = 0;
};
Process& process() {
  static Process one;
  return one;
}

Status check(Session& session, const Wish& wish, uint32_t count) {
  if (count == 0 || count > max_nodes || session.rank() >= count)
    return fail(TC_ERR_MALFORMED, "the launcher says that this is process {} of {}; there can be {}", session.rank(),
                count, max_nodes);
  if (wish.id && *wish.id != session.rank())
    return fail(TC_ERR_INVALID, "this node's id is set to {} when the launcher gave it rank {}: leave id unset",
                *wish.id, session.rank());
  if (wish.options.nodes != 0 && wish.options.nodes != count)
    return fail(TC_ERR_INVALID, "nodes is set to {} when the launcher started {} processes", wish.options.nodes, count);
  const auto local = session.number(PMIX_LOCAL_SIZE);
  if (local && *local < count && is_loopback_address(wish.self.address))
    return fail(TC_ERR_INVALID, "{} of this job's {} processes are on other hosts, which cannot reach {}: {}",
                count - *local, count, wish.self.address, routable_hint);
  return {};
}

Error missing(Session& session, const Wish& wish, const std::string& key, uint32_t count) {
  std::vector<uint32_t> nodes;
  for (uint32_t rank = 0; rank < count; ++rank)
    if (const auto text = session.published(rank, key); text && !*text) nodes.push_back(rank);
  if (nodes.empty())
    return {TC_ERR_TIMEOUT,
            fmt::format("the {} nodes of this PMIx job did not meet within {} ms", count, wish.options.timeout_ms)};
  return {TC_ERR_TIMEOUT, fmt::format("{} of {} did not appear in this PMIx job within {} ms", name_nodes(nodes), count,
                                      wish.options.timeout_ms)};
}

// What a node publishes: "ADDRESS KEY".
std::string encode(const Contact& contact) { return fmt::format("{} {}", contact.address, contact.key.text()); }

Result<Contact> decode(std::string_view text, uint32_t rank) {
  const auto blank = text.find(' ');
  if (blank == std::string_view::npos)
    return fail(TC_ERR_MALFORMED, "what node {} published is no address with a key behind it", rank);
  Contact contact{.address = std::string(text.substr(0, blank))};
  TC_CHECK(check_address(contact.address, fmt::format("node {}", rank)));
  const auto key = trust::PublicKey::parse(text.substr(blank + 1));
  if (!key) return fail(TC_ERR_MALFORMED, "what node {} published as its key is no public key", rank);
  contact.key = *key;
  return contact;
}

Result<Cluster> exchange(const Wish& wish) {
  const std::unique_lock turn(process().turn, std::chrono::nanoseconds(wish.deadline.remaining_ns()));
  if (!turn) return fail(TC_ERR_TIMEOUT, "another node of this process is still waiting for its PMIx job");
  const auto key = fmt::format("threechains.node.{}", process().rounds++);
  Session session;
  TC_CHECK(session.open());
  TC_ASSIGN(const auto count, session.number(PMIX_JOB_SIZE));
  TC_CHECK(check(session, wish, count));
  TC_CHECK(session.publish(key, encode(wish.self)));
  TC_ASSIGN(const bool met, session.fence(wish.deadline));
  if (!met) return fail(missing(session, wish, key, count));
  Cluster cluster{.id = session.rank()};
  for (uint32_t rank = 0; rank < count; ++rank) {
    TC_ASSIGN(const auto text, session.published(rank, key));
    if (!text) return fail(TC_ERR_NOT_FOUND, "node {} of {} met us and published no address", rank, count);
    TC_ASSIGN(auto contact, decode(*text, rank));
    cluster.addresses.push_back(std::move(contact.address));
    cluster.keys.push_back(contact.key);
  }
  return cluster;
}

struct Task {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<Cluster>> result;
};

Result<Cluster> exchange_or_error(const Wish& wish) noexcept {
  try {
    return exchange(wish);
  } catch (const std::exception& problem) {
    return fail(Error{TC_ERR_INTERNAL, problem.what()});
  }
}

}  // namespace

Result<Cluster> PmixClient::meet(const Contact& self, std::optional<uint32_t> id, Deadline deadline) {
  TC_CHECK(check_address(self.address, "this node"));
  const auto task = std::make_shared<Task>();
  auto started = quiet_thread([task, wish = Wish{options_, self, id, deadline}] {
    auto result = exchange_or_error(wish);
    const std::lock_guard lock(task->mutex);
    task->result = std::move(result);
    task->changed.notify_all();
  });
  if (!started) return context("bootstrap by PMIx: no thread can be started", std::move(started).error());
  auto thread = std::move(*started);
  std::unique_lock lock(task->mutex);
  const auto longest = std::chrono::nanoseconds(deadline.remaining_ns()) + time_to_tell;
  if (!task->changed.wait_for(lock, longest, [&] { return task->result.has_value(); })) {
    thread.detach();  // it sits in a call of PMIx's, which cannot be ended
    return fail(TC_ERR_TIMEOUT, "the PMIx launcher of this process did not answer within {} ms", options_.timeout_ms);
  }
  auto result = std::move(*task->result);
  lock.unlock();
  thread.join();
  if (!result) return context("bootstrap by PMIx", result.error());
  return result;
}

}  // namespace tc::node::bootstrap
