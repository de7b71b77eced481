// SPDX-License-Identifier: Apache-2.0
#include "node/peer_shares.h"

#include <sys/resource.h>

#include <algorithm>

#include "node/config.h"
#include "transport/origin.h"

namespace tc::node {

namespace {

// What a frame holds besides a payload of the largest size, and more.
constexpr size_t frame_overhead = size_t{64} * 1024;

// Each link takes a descriptor, of which others need some, too.
size_t half_of_descriptors() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return SIZE_MAX;
  return std::max<size_t>(limit.rlim_cur / 2, PeerShares::links_to_run_nothing);
}

}  // namespace

PeerShares::PeerShares(const Config& config) noexcept
    : most_links_(std::min<size_t>(config.key_links, half_of_descriptors())),
      memory_(std::max(config.message_memory / 2, config.max_message + frame_overhead)) {}

Status PeerShares::may_add_link(const trust::Rights& rights, size_t links) const {
  if (rights.is_all()) return {};
  const bool runs_nothing = rights.run() == trust::Run::none;
  const auto most = runs_nothing ? std::min(most_links_, links_to_run_nothing) : most_links_;
  if (links < most) return {};
  return fail(TC_ERR_LIMIT, "{} has {} links to this node, and may have {} at a time ({})", rights.whose(), links, most,
              runs_nothing ? "run=none" : "key-links");
}

std::shared_ptr<MemoryBudget> PeerShares::memory_of(const transport::Origin& peer, const trust::Rights* rights) {
  return !peer.key || (rights != nullptr && rights->is_all()) ? nullptr : memory_of(*peer.key);
}

std::shared_ptr<MemoryBudget> PeerShares::memory_of(const trust::PublicKey& key) {
  if (const auto found = shares_.find(key); found != shares_.end())
    if (auto share = found->second.lock()) return share;
  std::erase_if(shares_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = shares_[key];
  auto share = known.lock();
  if (share == nullptr) known = share = std::make_shared<MemoryBudget>(memory_);
  return share;
}

}  // namespace tc::node
