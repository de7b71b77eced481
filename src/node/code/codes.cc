// SPDX-License-Identifier: Apache-2.0
#include "node/code/codes.h"

#include <fmt/ranges.h>
#include <spdlog/logger.h>

#include "node/call_log.h"
#include "node/config.h"
#include "target/executor.h"

namespace tc::node {

Codes::Codes(const Common& common, target::Executor& executor)
    : common_(common), executor_(executor), registry_(common.config.path), sent_(common.config.source_budget) {}

Status Codes::start(std::function<void(const target::Code&)> on_loaded, target::CodeStore::OnFree on_free) {
  on_loaded_ = std::move(on_loaded);
  for (const auto& library : common_.config.allowed_libraries) policy_.allow_library(library);
  for (const auto& rule : common_.config.allowed_exports) TC_CHECK(policy_.allow_export(rule));
  auto options = common_.config.code;
  options.has_other_threads = common_.config.threads > 1;
  options.warn = [log = &common_.call_log](const std::string& what) { log->warn("code", what); };
  TC_ASSIGN(store_, target::CodeStore::create(std::move(options), policy_, std::move(on_free)));
  return common_.config.warm_up ? store_->warm_up() : Status{};
}

// ---- Found

const Bundle* Codes::runnable_on(const TargetTriple& triple, const ContentId& id) const {
  if (const auto ifunc = registry_.find(id); ifunc && ifunc->bundle.useful_for(triple) != 0) return &ifunc->bundle;
  const auto* const code = store_->find(id);
  return code != nullptr && code->bundle->useful_for(triple) != 0 ? code->bundle.get() : nullptr;
}

const Bundle* Codes::bundle_for(const TargetTriple& triple, const ContentId& id) const {
  const Bundle* const sent = sent_.find(id);
  if (sent != nullptr && sent->useful_for(triple) != 0) return sent;
  if (const Bundle* const runnable = runnable_on(triple, id)) return runnable;
  if (sent != nullptr) return sent;
  if (const auto ifunc = registry_.find(id)) return &ifunc->bundle;
  const auto* const code = store_->find(id);
  return code != nullptr ? code->bundle.get() : nullptr;
}

std::shared_ptr<const Bytes> Codes::section_for(const TargetTriple& triple, const Bundle& bundle) {
  if (const auto which = bundle.useful_for(triple)) return sent_.section(bundle, which);
  const auto* const other = bundle_for(triple, bundle.id());
  return other != nullptr ? sent_.section(*other, other->useful_for(triple)) : sent_.section(bundle, 0);
}

void Codes::keep_sent(const TargetTriple& triple, const Bundle& bundle) {
  const Bundle* const other = bundle.useful_for(triple) == 0 ? runnable_on(triple, bundle.id()) : nullptr;
  sent_.keep(other != nullptr ? *other : bundle);
}

// What was bundled with code is what that code was built with, whatever else has the same name here.
const Bundle* Codes::bundled_with(const target::Code& code, std::string_view name) {
  if (const auto known = bundled_.find(code.id()); known != bundled_.end())
    if (const auto found = known->second.find(name); found != known->second.end()) return &found->second;
  if (!code.bundle->has_bundled(name)) return nullptr;
  auto bundled = code.bundle->bundled(name);
  if (!bundled) {
    common_.call_log.warn("code", bundled.error().message);
    return nullptr;
  }
  return &bundled_[code.id()].emplace(name, std::move(*bundled)).first->second;
}

Result<const Bundle*> Codes::called_by(const target::Code& code, std::string_view name) {
  if (const auto* const bundled = bundled_with(code, name)) return bundled;
  if (const auto ifunc = registry_.find(std::string(name))) return &ifunc->bundle;
  if (const auto known = loaded_names_.find(name); known != loaded_names_.end())
    if (const auto* const loaded = store_->find(known->second)) return loaded->bundle.get();
  return fail(TC_ERR_NOT_FOUND, "{} knows no ifunc '{}'", common_.self.label, name);
}

bool Codes::add_signatures(const Bundle& bundle) {
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

// ---- Loaded and freed

Result<target::Code*> Codes::load(Bundle bundle, const CodeOrigin& from, Bytes object) {
  const target::Executor::Pause pause(executor_);
  const bool is_new = store_->find(bundle.id()) == nullptr;
  if (is_new) TC_CHECK(CodeShares::fits(*from.rights, bundle));
  target::Sender sender(from.host);
  sender.label = from.rights->peer.whose();
  if (!from.rights->is_all())
    sender.may_export = [&rights = *from.rights](const std::string& symbol) { return rights.may_export(symbol); };
  if (from.rights->is_trusted()) sender.assembly = target::Assembly::allowed;
  TC_ASSIGN(auto* const code, from.in_cell ? store_->hold(std::move(bundle), sender, std::move(object))
                                           : store_->load(std::move(bundle), sender, std::move(object)));
  if (is_new) TC_CHECK(shares_.add(from.key, *from.rights, *code));
  if (const auto& manifest = code->bundle->manifest(); manifest.has(entry_library)) {
    common_.log.info("library '{}' ({}) from {} exports {}", code->name(), code->id().short_hex(),
                     from.host.empty() ? "here" : from.host, fmt::join(manifest.exports, ", "));
    ++libraries_loaded_;
  }
  loaded_names_.insert_or_assign(code->name(), code->id());
  common_.counters.load_ns = code->load_ns;
  if (is_new) common_.counters.loads.add(code->load_ns);
  if (code->use == nullptr) code->use = &uses_.of(code->name());
  on_loaded_(*code);
  return code;
}

std::vector<wire::IfuncReport> Codes::uses() const {
  store_->each([](target::Code& code) { code.fold_calls(); });
  std::vector<wire::IfuncReport> told;
  for (const auto& [name, use] : uses_.all())
    if (use.calls != 0 || use.failures != 0) told.push_back({name, use.calls, use.failures, use.run, use.latency});
  return told;
}

void Codes::forget(target::Code& code) {
  code.fold_calls();
  shares_.forget(code);
  bundled_.erase(code.id());
  if (const auto known = loaded_names_.find(code.name()); known != loaded_names_.end() && known->second == code.id())
    loaded_names_.erase(known);
}

}  // namespace tc::node
