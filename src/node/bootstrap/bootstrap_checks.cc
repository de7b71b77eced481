// SPDX-License-Identifier: Apache-2.0
//
// What the node and the PMIx plug-in both need of bootstrap.h.
#include <algorithm>

#include "node/bootstrap/bootstrap.h"

namespace tc::node::bootstrap {

Status check_address(std::string_view address, std::string_view whose) {
  if (address.empty() || address.size() > 255)
    return fail(TC_ERR_MALFORMED, "the address of {} is {} bytes when it is 1 to 255", whose, address.size());
  if (!std::ranges::all_of(address, [](char c) { return c > ' ' && c < 127 && c != ','; }))
    return fail(TC_ERR_MALFORMED, "the address of {} holds characters that no address has", whose);
  return {};
}

bool is_loopback_address(std::string_view address) noexcept {
  return address.starts_with("127.") || address.starts_with("[::1]") || address.starts_with("localhost:");
}

std::string name_nodes(const std::vector<uint32_t>& nodes) {
  constexpr size_t most = 8;
  std::string text = nodes.size() == 1 ? "node " : "nodes ";
  const auto shown = nodes.size() > most + 1 ? most : nodes.size();
  for (size_t i = 0; i < shown; ++i) {
    const bool last = i + 1 == nodes.size();
    text += fmt::format("{}{}", i == 0 ? "" : last ? " and " : ", ", nodes[i]);
  }
  if (shown < nodes.size()) text += fmt::format(" and {} more", nodes.size() - shown);
  return text;
}

}  // namespace tc::node::bootstrap
