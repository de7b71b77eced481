// SPDX-License-Identifier: Apache-2.0
//
// What the ifuncs of a node do, by name: code is freed, replaced and comes again, and these numbers never become smaller.
//
// Thread: the node's.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "target/code_use.h"
#include "wire/statistics.h"

namespace tc::node {

class IfuncUses {
 public:
  // So many names are told apart. Whoever may run code chooses names, so there must be an end: later ones share the last.
  static constexpr size_t most_names = wire::most_ifuncs - 1;

  // Of all code of that name. It stays as long as the node. May throw std::bad_alloc.
  target::CodeUse& of(std::string_view name);
  const std::map<std::string, target::CodeUse, std::less<>>& all() const noexcept { return uses_; }

 private:
  std::map<std::string, target::CodeUse, std::less<>> uses_;
};

}  // namespace tc::node
