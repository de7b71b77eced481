// SPDX-License-Identifier: Apache-2.0
#include "source/sent_code.h"

#include "wire/frame.h"

namespace tc::source {

namespace {
constexpr size_t remembered_limit = size_t{1} << 20;  // as encoded: what is larger is not held twice
}

void SentCode::keep(const Bundle& sent) {
  const auto known = by_content_.find(sent.id());
  if (known != by_content_.end() && (sent.carried() & ~known->second->bundle.carried()) == 0)
    return add_signatures(sent);
  Bundle bundle = sent;
  if (known != by_content_.end()) {
    const auto& kept = known->second->bundle;
    for (const auto& signature : kept.signatures()) (void)bundle.add_signature(signature);
    forget(known->second);  // this one holds more slices
  }
  const size_t bytes = bundle.size_for(bundle.carried());
  kept_.push_back({std::move(bundle), bytes});
  by_content_[sent.id()] = std::prev(kept_.end());
  bytes_ += bytes;
  while (bytes_ > budget_) forget(kept_.begin());
}

void SentCode::add_signatures(const Bundle& bundle) {
  const auto known = by_content_.find(bundle.id());
  if (known == by_content_.end()) return;
  for (const auto& signature : bundle.signatures()) (void)known->second->bundle.add_signature(signature);
}

void SentCode::forget(Order::iterator kept) noexcept {
  bytes_ -= kept->bytes;
  by_content_.erase(kept->bundle.id());
  kept_.erase(kept);
}

const Bundle* SentCode::find(const ContentId& id) const noexcept {
  const auto known = by_content_.find(id);
  return known != by_content_.end() ? &known->second->bundle : nullptr;
}

std::shared_ptr<const Bytes> SentCode::section(const Bundle& bundle, uint64_t which) {
  if (last_.bytes != nullptr && last_.id == bundle.id() && last_.which == which &&
      last_.signatures == bundle.signatures())
    return last_.bytes;
  const auto slices = bundle.bytes_for(which);
  Bytes section;
  wire::append_code(section, {bundle.id(), which, static_cast<uint32_t>(slices.size())}, slices);
  auto bytes = std::make_shared<const Bytes>(std::move(section));
  if (bytes->size() <= remembered_limit) last_ = {bundle.id(), which, bundle.signatures(), bytes};
  return bytes;
}

}  // namespace tc::source
