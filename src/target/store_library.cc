// SPDX-License-Identifier: Apache-2.0
//
// Libraries: what they export, and binding their users anew when a newer version comes. It happens between two calls,
// so that no call sees both versions.
#include <algorithm>

#include "target/store.h"

namespace tc::target {

Status Store::check_exports(const Manifest& manifest, std::string_view from) const {
  for (const auto& symbol : manifest.exports) TC_CHECK(policy_.may_export(symbol, from));
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
  if (code.memory.bytes() != 0) {
    code.retired.push_back(std::exchange(code.memory, CodeMemory{}));
    retiring_.push_back(&code);
  }
  code.memory = std::move(linked.memory);
  code.exports = std::move(linked.exports);
  code.entry.store(linked.entry, std::memory_order_release);
  code.tier.store(linked.tier, std::memory_order_release);
}

// All or nothing: every user is linked to the new version before any is switched over.
Status Store::bind_library(StoredCode& library) {
  auto* const before = exporting(library.name());
  const Exports old = before != nullptr ? before->exports : Exports{};
  TC_CHECK(policy_.replace_exports(old, library.exports));
  const auto users = users_of(old, library.exports);
  std::vector<Linked> linked;
  for (auto* user : users) {
    tuner_.cancel(*user);  // what it is compiling is bound to the old version
    adopt();
    auto bound = link(*user);
    if (!bound) {
      for (auto* again : users) tune_later(*again);
      (void)policy_.replace_exports(library.exports, old);
      return context(fmt::format("ifunc '{}', which uses it here, does not link to this version", user->name()),
                     std::move(bound).error());
    }
    linked.push_back(std::move(*bound));
  }
  for (size_t i = 0; i < users.size(); ++i) {
    take_over(*users[i], std::move(linked[i]));
    count(*users[i]);
    if (users[i]->tier.load(std::memory_order_relaxed) != Tier::tuned) tune_later(*users[i]);
    ++stats_.rebinds;
  }
  if (before != nullptr) {
    before->exports.clear();  // others stand under those names now
    free(*before);
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
