// SPDX-License-Identifier: Apache-2.0
#include "node/known_code.h"

#include <spdlog/logger.h>

namespace tc::node {

const Bundle* KnownCode::runnable_on(const TargetTriple& triple, const ContentId& id) const {
  if (const auto ifunc = registry_.find(id); ifunc && ifunc->bundle.useful_for(triple) != 0) return &ifunc->bundle;
  const auto* const code = store_->find(id);
  return code != nullptr && code->bundle->useful_for(triple) != 0 ? code->bundle.get() : nullptr;
}

const Bundle* KnownCode::bundle_for(const TargetTriple& triple, const ContentId& id) const {
  const Bundle* const sent = sent_.find(id);
  if (sent != nullptr && sent->useful_for(triple) != 0) return sent;
  if (const Bundle* const runnable = runnable_on(triple, id)) return runnable;
  if (sent != nullptr) return sent;
  if (const auto ifunc = registry_.find(id)) return &ifunc->bundle;
  const auto* const code = store_->find(id);
  return code != nullptr ? code->bundle.get() : nullptr;
}

std::shared_ptr<const Bytes> KnownCode::section_for(const TargetTriple& triple, const Bundle& bundle) {
  if (const auto which = bundle.useful_for(triple)) return sent_.section(bundle, which);
  const auto* const other = bundle_for(triple, bundle.id());
  return other != nullptr ? sent_.section(*other, other->useful_for(triple)) : sent_.section(bundle, 0);
}

void KnownCode::keep_sent(const TargetTriple& triple, const Bundle& bundle) {
  const Bundle* const other = bundle.useful_for(triple) == 0 ? runnable_on(triple, bundle.id()) : nullptr;
  sent_.keep(other != nullptr ? *other : bundle);
}

// What was bundled with code is what that code was built with, whatever else has the same name here.
const Bundle* KnownCode::bundled_with(const target::Code& code, std::string_view name) {
  if (const auto known = bundled_.find(code.id()); known != bundled_.end())
    if (const auto found = known->second.find(name); found != known->second.end()) return &found->second;
  if (!code.bundle->has_bundled(name)) return nullptr;
  auto bundled = code.bundle->bundled(name);
  if (!bundled) {
    log_.warn("{}", bundled.error().message);
    return nullptr;
  }
  return &bundled_[code.id()].emplace(name, std::move(*bundled)).first->second;
}

Result<const Bundle*> KnownCode::called_by(const target::Code& code, std::string_view name) {
  if (const auto* const bundled = bundled_with(code, name)) return bundled;
  if (const auto ifunc = registry_.find(std::string(name))) return &ifunc->bundle;
  if (const auto known = loaded_names_.find(name); known != loaded_names_.end())
    if (const auto* const loaded = store_->find(known->second)) return loaded->bundle.get();
  return fail(TC_ERR_NOT_FOUND, "{} knows no ifunc '{}'", self_.label, name);
}

bool KnownCode::add_signatures(const Bundle& bundle) {
  if (bundle.signatures().empty()) return false;
  bool has_new = sent_.add_signatures(bundle);
  const auto add_to = [&](Bundle& held) {
    const auto before = held.signatures().size();
    for (const auto& signature : bundle.signatures()) (void)held.add_signature(signature);
    has_new |= held.signatures().size() != before;
  };
  if (const auto ifunc = registry_.find(bundle.id())) add_to(ifunc->bundle);
  if (auto* const code = store_->find(bundle.id())) add_to(*code->bundle);
  return has_new;
}

void KnownCode::loaded(const target::Code& code) {
  loaded_names_.insert_or_assign(code.name(), code.id());
  if (code.bundle->manifest().has(entry_library)) ++libraries_loaded_;
}

void KnownCode::forget(const target::Code& code) {
  bundled_.erase(code.id());
  if (const auto known = loaded_names_.find(code.name()); known != loaded_names_.end() && known->second == code.id())
    loaded_names_.erase(known);
}

}  // namespace tc::node
