// SPDX-License-Identifier: Apache-2.0
#include "transport/network/pending_limits.h"

#include <algorithm>

namespace tc::transport {

std::optional<size_t> pending_to_evict(std::span<const std::string_view> pending, std::string_view host,
                                       const PendingLimits& limits) noexcept {
  const bool is_own_user = host.empty();
  const auto oldest = [&](auto&& counts, size_t most) -> std::optional<size_t> {
    if (static_cast<size_t>(std::ranges::count_if(pending, counts)) < most) return {};
    return static_cast<size_t>(std::ranges::find_if(pending, counts) - pending.begin());
  };
  if (is_own_user) return oldest([](std::string_view other) { return other.empty(); }, limits.of_our_user);
  if (const auto same = oldest([&](std::string_view other) { return other == host; }, limits.of_one_host)) return same;
  return oldest([](std::string_view other) { return !other.empty(); }, limits.of_all_hosts);
}

}  // namespace tc::transport
