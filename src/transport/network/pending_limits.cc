// SPDX-License-Identifier: Apache-2.0
#include "transport/network/pending_limits.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <map>

namespace tc::transport {

namespace {

size_t count_of(std::span<const PendingCount> pending, std::string_view host) noexcept {
  return static_cast<size_t>(std::ranges::count(pending, host, &PendingCount::host));
}

// The host, other than our own user's processes, with most connections.
std::string_view most_counted(std::span<const PendingCount> pending) {
  std::map<std::string_view, size_t> counts;
  for (const auto& one : pending)
    if (!one.host.empty()) ++counts[one.host];
  const auto most = std::ranges::max_element(counts, {}, &std::pair<const std::string_view, size_t>::second);
  return most == counts.end() ? std::string_view() : most->first;
}

std::optional<size_t> random_one_of(std::span<const PendingCount> pending, std::string_view host, uint64_t random) {
  for (const bool proved : {false, true}) {
    const auto goes = [&](const PendingCount& one) { return one.host == host && one.has_proved_its_key == proved; };
    const auto count = static_cast<uint64_t>(std::ranges::count_if(pending, goes));
    if (count == 0) continue;
    for (size_t i = 0, before = 0; i < pending.size(); ++i)
      if (goes(pending[i]) && before++ == random % count) return i;
  }
  return {};
}

}  // namespace

std::string counted_host(std::string_view address) {
  std::string host(address);
  in6_addr bytes{};
  if (inet_pton(AF_INET6, host.c_str(), &bytes) != 1) return host;
  std::fill(std::begin(bytes.s6_addr) + 8, std::end(bytes.s6_addr), uint8_t{0});
  std::array<char, INET6_ADDRSTRLEN> text{};
  return inet_ntop(AF_INET6, &bytes, text.data(), text.size()) + std::string("/64");
}

std::optional<size_t> pending_to_evict(std::span<const PendingCount> pending, std::string_view host,
                                       const PendingLimits& limits, uint64_t random) {
  const size_t same = count_of(pending, host), ours = count_of(pending, {});
  if (same >= (host.empty() ? limits.of_our_user : limits.of_one_host)) return random_one_of(pending, host, random);
  if (host.empty() || pending.size() - ours < limits.of_all_hosts) return {};
  return random_one_of(pending, most_counted(pending), random);
}

}  // namespace tc::transport
