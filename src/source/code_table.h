// SPDX-License-Identifier: Apache-2.0
//
// The code that one peer holds, with its numbers on the link to that peer (docs/wire-format.md). The table belongs to
// the link and ends with it: a peer that reconnects holds no code.
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

  // The number for an ifunc of this node, by its index. `none`: its code must be sent with the call. On the hot path.
  uint32_t number_of(uint32_t index) const noexcept { return index < by_index_.size() ? by_index_[index] : none; }

  // The number for code that is called with that chain. `none`: the code was not sent to the peer.
  uint32_t number_of(const ContentId& id, const wire::SharedChain& chain = nullptr) const noexcept;

  // Takes a new number for code that will be sent. `index` is `none` for code that this node only forwards. number_of()
  // does not return the number until set_sent(). The sender may have to wait for room, and meanwhile a call by number
  // must not overtake the code. TC_ERR_LIMIT: all numbers are used.
  Result<uint32_t> assign(const ContentId& id, uint32_t index, wire::SharedChain chain = nullptr);
  // The code was sent. If it was sent under another number before, that number stays in use.
  void set_sent(uint32_t number, uint32_t index) noexcept;
  // The code was not sent after all.
  void give_back(uint32_t number) noexcept;
  // Records that the ifunc with this index has this number.
  void alias(uint32_t index, uint32_t number);
  // The number must not be used any more: the code must be sent again, or cannot be sent. The next call takes a new
  // number.
  void withdraw(uint32_t number) noexcept;
  // Withdraws all numbers of that code, with any chain. Calls `withdrawn` with each number.
  template <class Withdrawn>
  void withdraw_all(const ContentId& id, const Withdrawn& withdrawn) noexcept {
    for (uint32_t number = 0; number < sent_.size(); ++number)
      if (sent_[number].id == id && in_use(number) == number) withdraw(number), withdrawn(number);
  }

  // The code with that number. Null: the number was never used. Code is sent in front of its first call, and frames run
  // in order. So later calls may use the number at once.
  const ContentId* id_of(uint32_t number) const noexcept;
  // The chain of calls by a number that is in use. Null: an empty chain.
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
  std::unordered_map<ContentId, uint32_t> by_table_key_;  // Chain::table_key(); `none`: not sent yet
};

}  // namespace tc::source
