// SPDX-License-Identifier: Apache-2.0
#include "node/ifunc_uses.h"

namespace tc::node {

target::CodeUse& IfuncUses::of(std::string_view name) {
  if (const auto known = uses_.find(name); known != uses_.end()) return known->second;
  if (uses_.size() >= most_names) name = wire::other_ifuncs;
  return uses_.try_emplace(std::string(name)).first->second;
}

}  // namespace tc::node
