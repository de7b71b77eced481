// SPDX-License-Identifier: Apache-2.0
#include "ifunc-metrics/host_header.h"

#include <arpa/inet.h>

#include <algorithm>

namespace tc::metrics {
namespace {

constexpr std::string_view digits = "0123456789";

// Without its port, and the dot at the end of a complete name.
std::string_view host_of(std::string_view header) noexcept {
  const auto colon = header.rfind(':');
  if (colon != header.npos && header.find_first_not_of(digits, colon + 1) == header.npos &&
      (header.front() != '[' || header[colon - 1] == ']'))
    header = header.substr(0, colon);
  if (header.ends_with('.')) header.remove_suffix(1);
  return header;
}

bool is_number(std::string_view host) {
  in6_addr address{};
  if (host.starts_with('[') && host.ends_with(']'))
    return ::inet_pton(AF_INET6, std::string(host.substr(1, host.size() - 2)).c_str(), &address) == 1;
  return ::inet_pton(AF_INET, std::string(host).c_str(), &address) == 1;
}

char lower(char letter) noexcept { return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter | 0x20) : letter; }

}  // namespace

bool is_for_us(std::string_view header, std::span<const std::string> names) {
  const auto host = host_of(header);
  const auto is_it = [host](std::string_view name) {
    return std::ranges::equal(host, host_of(name), {}, lower, lower);
  };
  return is_number(host) || is_it("localhost") || std::ranges::any_of(names, is_it);
}

}  // namespace tc::metrics
