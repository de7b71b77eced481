// SPDX-License-Identifier: Apache-2.0
//
// Which keys brought the code that the store holds: that of the link, and those on whose behalf the link's peer called it. A
// key may have a budget of its own (code=BYTES in the keyring). When a key is revoked or its line is gone, what it brought or
// signed is evicted.
//
// Thread: the node's. Nothing here is called while an ifunc runs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "target/code_store.h"
#include "trust/permission.h"

namespace tc::node {

class CodeShares {
 public:
  explicit CodeShares(const std::unique_ptr<target::CodeStore>& store) : store_(store) {}

  // Could the bundle be kept at all within the budgets of the keys that bring it? TC_ERR_LIMIT, with the line.
  static Status fits(const trust::CodeRights& rights, const Bundle& bundle);
  // `code` was just loaded for a link with `key`, if it has one: each key's least recently used code goes until the rest is
  // within its budget. TC_ERR_LIMIT, with the line: the code alone takes more, and is evicted.
  Status add(const std::optional<trust::PublicKey>& key, const trust::CodeRights& rights, target::Code& code);
  // What this key brought, and what it signed.
  void evict_all_of(const trust::PublicKey& key);
  // The store is about to free it.
  void forget(const target::Code& code) noexcept;

 private:
  using Share = std::vector<target::Code*>;
  Status make_room(const Share& share, const trust::Rights& whose, target::Code& code);
  static size_t bytes_of(const Share& share) noexcept;
  static target::Code* least_recent(const Share& share, const target::Code& spared) noexcept;

  const std::unique_ptr<target::CodeStore>& store_;  // made while the node starts
  std::map<trust::PublicKey, Share> shares_;
};

}  // namespace tc::node
