// SPDX-License-Identifier: Apache-2.0
#include "target/fatal_bitcode.h"

namespace tc::target {

namespace {

constexpr const char* others = "";

}  // namespace

void FatalBitcode::count(const std::string& sender) {
  const std::lock_guard lock(mutex_);
  const bool has_room = counts_.size() < most_senders || counts_.contains(sender);
  ++counts_[has_room ? sender : others];
}

Status FatalBitcode::check(const std::string& sender) const {
  const std::lock_guard lock(mutex_);
  auto found = counts_.find(sender);
  if (found == counts_.end() && counts_.size() >= most_senders) found = counts_.find(others);
  if (found == counts_.end() || found->second < most) return {};
  return fail(
      TC_ERR_LIMIT,
      "LLVM gave up at {} pieces of bitcode from {}, which is the most that this node bears: it compiles no more of "
      "that sender until it is started again; send machine code instead",
      found->second, sender.empty() ? "this node itself" : sender);
}

}  // namespace tc::target
