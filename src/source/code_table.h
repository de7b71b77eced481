// SPDX-License-Identifier: Apache-2.0
//
// What one peer holds of the code we send it, and by which numbers (docs/wire-format.md). The table belongs to a
// link and dies with it: a peer that comes back is a new peer that holds nothing.
//
// Thread: the node's.
#pragma once

#include <unordered_map>
#include <vector>

#include "source/registry.h"
#include "wire/chain.h"

namespace tc::source {

class CodeTable {
 public:
  static constexpr uint32_t none = ~uint32_t{0};

  // Hot: the number for an ifunc of this node by its index; `none` when its code has to go along first.
  uint32_t number_of(uint32_t index) const noexcept { return index < by_index_.size() ? by_index_[index] : none; }

  // The number for some code, called for that chain, whichever registration it came from; `none` when the peer was never
  // offered it.
  uint32_t number_of(const ContentId& id, const wire::SharedChain& chain = nullptr) const noexcept;

  // Takes a new number for code about to be sent. `index` may be `none` (code that only passes through). Nothing finds the
  // number until set_sent(): who sends the code may have to wait for room, and meanwhile no call may go by the number alone
  // and overtake the code. TC_ERR_LIMIT when numbers are used up.
  Result<uint32_t> assign(const ContentId& id, uint32_t index, wire::SharedChain chain = nullptr);
  // The code has left. Where it left by another number as well, the first one that did stays in use.
  void set_sent(uint32_t number, uint32_t index) noexcept;
  // The code did not leave.
  void give_back(uint32_t number) noexcept;
  // Remembers that an ifunc of this node has a number already.
  void alias(uint32_t index, uint32_t number);
  // The code that was sent has to be sent again, or cannot be: the next call takes a new number.
  void withdraw(uint32_t number) noexcept;
  // The same for that code, whomever it was called for. Calls `withdrawn` with each number.
  template <class Withdrawn>
  void withdraw_all(const ContentId& id, const Withdrawn& withdrawn) noexcept {
    for (uint32_t number = 0; number < sent_.size(); ++number)
      if (sent_[number].id == id && in_use(number) == number) withdraw(number), withdrawn(number);
  }

  // Which code has that number; null when it was never used. Code is sent in front of its first call, and frames run in
  // order, so later calls may go by number at once.
  const ContentId* id_of(uint32_t number) const noexcept;
  // For whom calls by a number that is in use are made. Null: nobody.
  const wire::SharedChain& chain_of(uint32_t number) const noexcept { return sent_[number].chain; }
  bool is_empty() const noexcept { return sent_.empty(); }

 private:
  struct Sent {
    ContentId id;
    wire::SharedChain chain;
  };
  void make_room_for(uint32_t index);
  uint32_t& in_use(uint32_t number) noexcept;

  std::vector<Sent> sent_;  // by number
  std::vector<uint32_t> by_index_;
  std::unordered_map<ContentId, uint32_t> by_name_;  // Chain::name_of(); `none`: it has not left
};

}  // namespace tc::source
