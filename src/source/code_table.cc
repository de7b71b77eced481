// SPDX-License-Identifier: Apache-2.0
#include "source/code_table.h"

#include <algorithm>

namespace tc::source {

namespace {
// Receivers refuse larger numbers (target/receiver.h), so that a table costs them a few megabytes at most.
constexpr uint32_t number_limit = 1u << 20;

ContentId table_key_of(const ContentId& id, const wire::SharedChain& chain) noexcept {
  return chain != nullptr ? chain->table_key(id) : id;
}
}  // namespace

uint32_t CodeTable::number_of(const ContentId& id, const wire::SharedChain& chain) const noexcept {
  const auto found = by_table_key_.find(table_key_of(id, chain));
  return found != by_table_key_.end() ? found->second : none;
}

Result<uint32_t> CodeTable::assign(const ContentId& id, uint32_t index, wire::SharedChain chain) {
  if (sent_.size() >= number_limit)
    return fail(TC_ERR_LIMIT, "{} different ifuncs were sent to one peer, which is as many as it takes; connect again",
                sent_.size());
  // All memory that set_sent() needs: once the code has left, nothing may fail.
  make_room_for(index);
  by_table_key_.try_emplace(table_key_of(id, chain), none);
  sent_.push_back({id, std::move(chain)});
  return static_cast<uint32_t>(sent_.size() - 1);
}

uint32_t& CodeTable::in_use(uint32_t number) noexcept {
  return by_table_key_.find(table_key_of(sent_[number].id, sent_[number].chain))->second;
}

void CodeTable::set_sent(uint32_t number, uint32_t index) noexcept {
  auto& used = in_use(number);
  if (used == none) used = number;
  if (index != none) by_index_[index] = used;
}

// The last one is taken again, lest a sender that tries until there is room use them up.
void CodeTable::give_back(uint32_t number) noexcept {
  if (number + 1 == sent_.size()) sent_.pop_back();
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
  if (auto& used = in_use(number); used == number) used = none;
  std::ranges::replace(by_index_, number, none);
}

const ContentId* CodeTable::id_of(uint32_t number) const noexcept {
  return number < sent_.size() ? &sent_[number].id : nullptr;
}

}  // namespace tc::source
