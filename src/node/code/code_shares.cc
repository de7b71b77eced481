// SPDX-License-Identifier: Apache-2.0
#include "node/code/code_shares.h"

#include <algorithm>

#include "trust/code_signature.h"

namespace tc::node {

namespace {

std::unexpected<Error> too_large(const trust::Rights& peer, const std::string& name, size_t bytes, uint64_t budget) {
  return fail(TC_ERR_LIMIT, "ifunc '{}' takes {} bytes when {} may keep {} bytes of code here: code={}", name, bytes,
              peer.whose(), budget, budget);
}

std::optional<uint64_t> budget_of(const trust::Rights& rights) noexcept {
  return rights.grant() != nullptr ? rights.grant()->code_budget : std::nullopt;
}

}  // namespace

Status CodeShares::fits(const trust::CodeRights& rights, const Bundle& bundle) {
  const auto bytes = bundle.size_for(bundle.carried());
  const auto check = [&](const trust::Rights& one) -> Status {
    const auto budget = budget_of(one);
    if (!budget || bytes <= *budget) return {};
    return too_large(one, bundle.manifest().name, bytes, *budget);
  };
  TC_CHECK(check(rights.peer));
  for (const auto& one : rights.behalf) TC_CHECK(check(one));
  return {};
}

Status CodeShares::add(const std::optional<trust::PublicKey>& key, const trust::CodeRights& rights,
                       target::Code& code) {
  if (key) shares_[*key].push_back(&code);
  for (const auto& one : rights.behalf) shares_[one.grant()->key].push_back(&code);
  if (key) TC_CHECK(make_room(shares_[*key], rights.peer, code));
  for (const auto& one : rights.behalf) TC_CHECK(make_room(shares_[one.grant()->key], one, code));
  return {};
}

Status CodeShares::make_room(const Share& share, const trust::Rights& whose, target::Code& code) {
  const auto budget = budget_of(whose);
  if (!budget) return {};
  // Code grows when it is tuned, so the share is summed up anew each time.
  while (bytes_of(share) > *budget) {
    auto* const victim = least_recent(share, code);
    if (victim != nullptr) {
      store_->evict(ContentId(victim->id()));
      continue;
    }
    auto refused = too_large(whose, code.name(), code.bytes, *budget);
    const ContentId id = code.id();
    store_->evict(id);
    return refused;
  }
  return {};
}

size_t CodeShares::bytes_of(const Share& share) noexcept {
  size_t bytes = 0;
  for (const auto* const code : share) bytes += code->bytes;
  return bytes;
}

target::Code* CodeShares::least_recent(const Share& share, const target::Code& spared) noexcept {
  target::Code* oldest = nullptr;
  for (auto* const code : share) {
    // A library stays: its users, of which the new code may be one, would go with it.
    if (code == &spared || code->pinned || code->bundle->manifest().has(entry_library)) continue;
    if (oldest == nullptr || code->last_used < oldest->last_used) oldest = code;
  }
  return oldest;
}

void CodeShares::evict_all_of(const trust::PublicKey& key) {
  std::vector<ContentId> ids;
  if (const auto found = shares_.find(key); found != shares_.end())
    for (const auto* const code : found->second) ids.push_back(code->id());
  store_->each([&](const target::Code& code) {
    if (!code.pinned && trust::is_signed_by(*code.bundle, key)) ids.push_back(code.id());
  });
  for (const auto& id : ids) store_->evict(id);
}

void CodeShares::forget(const target::Code& code) noexcept {
  for (auto& [key, share] : shares_) std::erase(share, &code);
}

}  // namespace tc::node
