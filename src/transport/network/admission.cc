// SPDX-License-Identifier: Apache-2.0
#include "transport/network/admission.h"

#include <algorithm>

namespace tc::transport {

std::optional<size_t> who_must_go(std::span<const std::string_view> waiting, std::string_view host,
                                  const AdmissionLimits& limits) noexcept {
  const bool is_ours = host.empty();
  const auto oldest = [&](auto&& counts, size_t most) -> std::optional<size_t> {
    if (static_cast<size_t>(std::ranges::count_if(waiting, counts)) < most) return {};
    return static_cast<size_t>(std::ranges::find_if(waiting, counts) - waiting.begin());
  };
  if (is_ours) return oldest([](std::string_view other) { return other.empty(); }, limits.of_our_user);
  if (const auto same = oldest([&](std::string_view other) { return other == host; }, limits.of_one_host)) return same;
  return oldest([](std::string_view other) { return !other.empty(); }, limits.of_all_hosts);
}

}  // namespace tc::transport
