// SPDX-License-Identifier: Apache-2.0
#include "source/code_table.h"

#include <algorithm>

namespace tc::source {

namespace {
// Receivers refuse larger numbers (target/receiver.h), so that a table costs them a few megabytes at most.
constexpr uint32_t number_limit = 1u << 20;
}  // namespace

uint32_t CodeTable::number_of(const ContentId& id) const noexcept {
  const auto found = by_content_.find(id);
  return found != by_content_.end() ? found->second : none;
}

Result<uint32_t> CodeTable::assign(const ContentId& id, uint32_t index) {
  if (ids_.size() >= number_limit)
    return fail(TC_ERR_LIMIT, "{} different ifuncs were sent to one peer, which is as many as it takes; connect again",
                ids_.size());
  const auto number = static_cast<uint32_t>(ids_.size());
  ids_.push_back(id);
  by_content_[id] = number;
  alias(index, number);
  return number;
}

void CodeTable::alias(uint32_t index, uint32_t number) {
  if (index == none) return;
  if (index >= by_index_.size()) by_index_.resize(std::max<size_t>(index + 1, by_index_.size() * 2), none);
  by_index_[index] = number;
}

void CodeTable::withdraw(uint32_t number) {
  // The number itself is never used again: a frame that names it may be on its way already.
  by_content_.erase(ids_[number]);
  std::ranges::replace(by_index_, number, none);
}

const ContentId* CodeTable::id_of(uint32_t number) const noexcept {
  return number < ids_.size() ? &ids_[number] : nullptr;
}

}  // namespace tc::source
