// SPDX-License-Identifier: Apache-2.0
#include "transport/transport.h"

namespace tc::transport {

std::string_view way_name(Way way) noexcept {
  switch (way) {
    case Way::automatic: return "auto";
    case Way::ring: return "ring";
    case Way::am: return "am";
    case Way::put: return "put";
    case Way::loopback: return "loopback";
  }
  return "unknown";
}

Result<Way> parse_way(std::string_view name) {
  for (const auto way : {Way::automatic, Way::ring, Way::am, Way::put, Way::loopback})
    if (way_name(way) == name) return way;
  return fail(TC_ERR_INVALID, "'{}' is no way to a peer: it is auto, ring, am, put or loopback", name);
}

}  // namespace tc::transport
