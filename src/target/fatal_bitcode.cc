// SPDX-License-Identifier: Apache-2.0
#include "target/fatal_bitcode.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace tc::target {

namespace {

constexpr const char* others = "senders beyond the first";

// Each connection has another port, and is from the same sender all the same: "10.0.0.7:41234, on a trusted network".
std::string without_port(const std::string& sender) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto colon = sender.rfind(':');
  if (colon == std::string::npos) return sender;
  const auto host = std::string_view(sender).substr(0, colon);
  if (host.contains(':') && !host.ends_with(']')) return sender;  // an address of IPv6 alone
  const auto rest = std::find_if_not(sender.begin() + static_cast<ptrdiff_t>(colon) + 1, sender.end(), is_digit);
  if (rest != sender.end() && *rest != ',') return sender;
  return std::string(host).append(rest, sender.end());
}

}  // namespace

void FatalBitcode::count(const std::string& sender) {
  if (sender.empty()) return;
  auto key = without_port(sender);
  const std::lock_guard lock(mutex_);
  const bool has_room = counts_.size() < most_senders || counts_.contains(key);
  ++counts_[has_room ? std::move(key) : others];
}

Status FatalBitcode::check(const std::string& sender) const {
  if (sender.empty()) return {};
  const auto key = without_port(sender);
  const std::lock_guard lock(mutex_);
  auto found = counts_.find(key);
  if (found == counts_.end() && counts_.size() >= most_senders) found = counts_.find(others);
  if (found == counts_.end() || found->second < most) return {};
  return fail(
      TC_ERR_LIMIT,
      "LLVM gave up at {} pieces of bitcode from {}, which is the most that this node bears: it compiles no more of "
      "that sender until it is started again; send machine code instead",
      found->second, sender);
}

}  // namespace tc::target
