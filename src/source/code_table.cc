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
  // All memory that set_sent() needs: once the code has left, nothing may fail.
  make_room_for(index);
  by_content_.try_emplace(id, none);
  ids_.push_back(id);
  return static_cast<uint32_t>(ids_.size() - 1);
}

void CodeTable::set_sent(uint32_t number, uint32_t index) noexcept {
  auto& in_use = by_content_.find(ids_[number])->second;
  if (in_use == none) in_use = number;
  if (index != none) by_index_[index] = in_use;
}

// The last one is taken again, lest a sender that tries until there is room use them up.
void CodeTable::give_back(uint32_t number) noexcept {
  if (number + 1 == ids_.size()) ids_.pop_back();
}

void CodeTable::alias(uint32_t index, uint32_t number) {
  make_room_for(index);
  if (index != none) by_index_[index] = number;
}

void CodeTable::make_room_for(uint32_t index) {
  if (index != none && index >= by_index_.size())
    by_index_.resize(std::max<size_t>(index + 1, by_index_.size() * 2), none);
}

void CodeTable::withdraw(uint32_t number) noexcept {
  // The number itself is never used again: a frame that names it may be on its way already.
  if (auto& in_use = by_content_.find(ids_[number])->second; in_use == number) in_use = none;
  std::ranges::replace(by_index_, number, none);
}

const ContentId* CodeTable::id_of(uint32_t number) const noexcept {
  return number < ids_.size() ? &ids_[number] : nullptr;
}

}  // namespace tc::source
