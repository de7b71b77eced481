// SPDX-License-Identifier: Apache-2.0
//
// Libraries: what they export, and binding their users anew when a newer version comes. It happens between two calls,
// so that no call sees both versions.
#include <algorithm>

#include "target/store.h"

namespace tc::target {

Status Store::check_exports(const std::vector<std::string>& symbols, const Sender& from) const {
  for (const auto& symbol : symbols) {
    TC_CHECK(policy_.may_export(symbol, from.host));
    if (from.may_export) TC_CHECK(from.may_export(symbol));
  }
  return {};
}

StoredCode* Store::exporting(const std::string& name) {
  const auto found = std::ranges::find_if(
      codes_, [&](const auto& entry) { return !entry.second->exports.empty() && entry.second->name() == name; });
  return found != codes_.end() ? found->second.get() : nullptr;
}

std::vector<StoredCode*> Store::users_of(const Exports& one, const Exports& other) {
  std::vector<StoredCode*> users;
  for (const auto& [id, code] : codes_) {
    const auto& imports = code->bundle->manifest().imports;
    const auto is_exported = [&](const auto& symbol) { return one.contains(symbol) || other.contains(symbol); };
    if (!code->is_library() && std::ranges::any_of(imports, is_exported)) users.push_back(code.get());
  }
  return users;
}

void Store::take_over(StoredCode& code, Linked linked) {
  put_aside(code, std::exchange(code.memory, std::move(linked.memory)));
  put_aside(code, std::exchange(code.first, {}));
  code.variables = std::move(linked.variables);
  code.exports = std::move(linked.exports);
  // Before the entry point, so that a thread that reads the entry point also reads that its executions count.
  if (linked.counted) code.counted.store(true, std::memory_order_release);
  code.entry.store(linked.entry, std::memory_order_release);
  code.tier.store(linked.tier, std::memory_order_release);
}

// All or nothing: every user is linked to the new version before any is switched over.
Status Store::bind_library(StoredCode& library, const Sender& from) {
  auto* const before = exporting(library.name());
  const Exports old = before != nullptr ? before->exports : Exports{};
  if (before != nullptr)
    if (auto allowed = check_exports(before->bundle->manifest().exports, from); !allowed)
      return context("it would take the place of the version that is here, for which its sender needs the same rights",
                     std::move(allowed).error());
  const auto users = users_of(old, library.exports);
  // Before any name means something else: what is being compiled is bound to the old version, or would be to a new one
  // that is refused after all.
  for (auto* user : users) tuner_.cancel(*user);
  adopt();
  auto changed = policy_.replace_exports(old, library.exports);
  std::vector<Linked> linked;
  if (changed) {
    changed = link_users(users, linked);
    if (!changed) (void)policy_.replace_exports(library.exports, old);
  }
  if (changed) {
    for (size_t i = 0; i < users.size(); ++i) take_over(*users[i], std::move(linked[i]));
    stats_.rebinds += users.size();
  }
  for (auto* user : users) {
    count(*user);
    if (user->tier.load(std::memory_order_relaxed) != Tier::tuned) tune_later(*user);
  }
  if (!changed) return changed;
  if (before != nullptr) {
    before->exports.clear();  // others stand under those names now
    free(*before);
  }
  return {};
}

Status Store::link_users(const std::vector<StoredCode*>& users, std::vector<Linked>& linked) {
  for (const auto* user : users) {
    auto bound = link(*user);
    if (!bound)
      return context(fmt::format("ifunc '{}', which uses it here, does not link to this version", user->name()),
                     std::move(bound).error());
    linked.push_back(std::move(*bound));
  }
  return {};
}

// Its users go with it: they would call what is gone.
void Store::withdraw(StoredCode& library) {
  if (library.exports.empty()) return;
  for (auto* user : users_of(library.exports, {})) free(*user);
  (void)policy_.replace_exports(std::exchange(library.exports, {}), {});
}

}  // namespace tc::target
