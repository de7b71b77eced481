// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

namespace tc::node::bootstrap {

namespace {
// Between looks at the others' files: short at first, as nodes mostly start together.
constexpr uint64_t first_pause_ns = 1'000'000;
constexpr uint64_t longest_pause_ns = 50'000'000;
}  // namespace

Result<Cluster> Directory::meet(const Contact& self, std::optional<uint32_t> id, Deadline deadline) {
  TC_CHECK(check_address(self.address, "this node"));
  TC_CHECK(prepare());
  TC_CHECK(claim(self, id));
  peers_.assign(count_, {});
  peers_[own_.id] = {.address = self.address, .key = self.key, .informed = true};
  bool informed = false;
  for (uint64_t pause_ns = first_pause_ns;; pause_ns = std::min(pause_ns * 3 / 2, longest_pause_ns)) {
    const bool last = deadline.passed();
    TC_CHECK(look_at_all());
    if (!informed && std::ranges::all_of(peers_, [](const Peer& peer) { return !peer.address.empty(); })) {
      TC_CHECK(claim_->mark_informed());
      informed = true;
    }
    if (informed && std::ranges::all_of(peers_, &Peer::informed)) break;
    if (last && !informed) return fail(missing());
    if (last) break;  // we know all; that another does not is for it to say
    std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(pause_ns, deadline.remaining_ns())));
  }
  Cluster cluster{.id = own_.id};
  for (auto& peer : peers_) {
    cluster.addresses.push_back(std::move(peer.address));
    cluster.keys.push_back(peer.key);
  }
  return cluster;
}

Status Directory::prepare() const {
  if (::mkdir(directory_.c_str(), 0700) != 0 && errno != EEXIST)
    return fail(TC_ERR_IO, "making the rendezvous directory {}: {}", directory_.string(), tc::system_words(errno));
  struct stat info{};
  if (::stat(directory_.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return fail(TC_ERR_INVALID, "the rendezvous directory {} is no directory", directory_.string());
  if (!is_ours(info))
    return fail(TC_ERR_DENIED,
                "the rendezvous directory {} belongs to user {}, who could put nodes of his own into it: name one that "
                "belongs to user {}, or one that is not there yet, which is then made",
                directory_.string(), info.st_uid, ::geteuid());
  if (others_can_write(info))
    return fail(TC_ERR_DENIED,
                "the rendezvous directory {} has mode {:04o}, so other users could put nodes of their own into it: "
                "chmod 700 it, or name one that is not there yet, which is then made with mode 0700",
                directory_.string(), info.st_mode & 07777);
  return {};
}

Status Directory::claim(const Contact& self, std::optional<uint32_t> id) {
  if (id && *id >= count_)
    return fail(TC_ERR_INVALID, "this node has id {} when there are nodes 0 to {}", *id, count_ - 1);
  own_ = {.id = id.value_or(0), .count = count_, .host = host_name(), .address = self.address, .key = self.key};
  while (true) {
    auto taken = Claim::take(directory_, own_);
    if (taken) return claim_.emplace(std::move(*taken)), Status{};
    if (id || taken.error().code != TC_ERR_BUSY)
      return context(fmt::format("taking number {} in {}", own_.id, directory_.string()), taken.error());
    if (++own_.id == count_)
      return fail(TC_ERR_BUSY, "living nodes have all {} numbers in {}: is another job using it?", count_,
                  directory_.string());
  }
}

Status Directory::look_at_all() {
  if (!claim_->holds())
    return fail(TC_ERR_UNSUPPORTED,
                "{} was replaced while this node has it: the file system does not carry locks from host to host, or "
                "somebody else removes files there",
                claim_->path().string());
  for (uint32_t id = 0; id < count_; ++id)
    if (!peers_[id].informed) TC_CHECK(take_in(id, look_at(claim_path(directory_, id), id)));
  return {};
}

Status Directory::take_in(uint32_t id, Sight sight) {
  auto& peer = peers_[id];
  if (sight.state != Sight::State::alive) {
    // It was there before: a node leaves when it knows all others, or when it has died. In that case its callers are told.
    peer.informed = !peer.address.empty();
    peer.flaw = std::move(sight.flaw);
    return {};
  }
  const auto& record = sight.record;
  if (record.count != count_)
    return fail(TC_ERR_INVALID, "{} in {}, at {}, expects {} nodes when this one expects {}", name_nodes({id}),
                directory_.string(), record.address, record.count, count_);
  if (record.host != own_.host && (is_loopback_address(record.address) || is_loopback_address(own_.address)))
    return fail(TC_ERR_INVALID, "node {} on {} is at {} and node {} on {} at {}: across hosts {}", id, record.host,
                record.address, own_.id, own_.host, own_.address, routable_hint);
  peer = {.address = record.address, .key = record.key, .informed = record.informed};
  return {};
}

Error Directory::missing() const {
  std::vector<uint32_t> nodes;
  std::string flaws;
  for (uint32_t id = 0; id < count_; ++id) {
    if (!peers_[id].address.empty()) continue;
    nodes.push_back(id);
    if (flaws.empty() && !peers_[id].flaw.empty()) flaws = fmt::format(" (node {}: {})", id, peers_[id].flaw);
  }
  return {TC_ERR_TIMEOUT, fmt::format("{} of {} did not appear in {} within {} ms{}", name_nodes(nodes), count_,
                                      directory_.string(), timeout_ms_, flaws)};
}

}  // namespace tc::node::bootstrap
