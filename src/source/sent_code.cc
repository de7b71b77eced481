// SPDX-License-Identifier: Apache-2.0
#include "source/sent_code.h"

#include "wire/frame.h"

namespace tc::source {

namespace {
constexpr size_t remembered_limit = size_t{1} << 20;  // as encoded: what is larger is not held twice
}

void SentCode::keep(const Bundle& bundle) {
  const auto known = by_content_.find(bundle.id());
  if (known != by_content_.end()) {
    if ((bundle.carried() & ~known->second->bundle.carried()) == 0) return;
    forget(known->second);  // this one holds more slices
  }
  const size_t bytes = bundle.size_for(bundle.carried());
  kept_.push_back({bundle, bytes});
  by_content_[bundle.id()] = std::prev(kept_.end());
  bytes_ += bytes;
  while (bytes_ > budget_) forget(kept_.begin());
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
  if (last_.bytes != nullptr && last_.id == bundle.id() && last_.which == which) return last_.bytes;
  const auto slices = bundle.bytes_for(which);
  Bytes section;
  wire::append_code(section, {bundle.id(), which, static_cast<uint32_t>(slices.size())}, slices);
  auto bytes = std::make_shared<const Bytes>(std::move(section));
  if (bytes->size() <= remembered_limit) last_ = {bundle.id(), which, bytes};
  return bytes;
}

}  // namespace tc::source
