// SPDX-License-Identifier: Apache-2.0
//
// What peers are told to connect to, when a node listens on more than that.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

struct ifaddrs;

namespace tc::node::bootstrap {

// `bound` is what the transport listens on, with its real port. `wish`, when not empty, is "HOST" or "HOST:PORT" and
// wins. Else a wildcard host (0.0.0.0, [::]) becomes the address of the first network interface that is up and no
// loopback; without one, the loopback address. Everything else stays as it is. TC_ERR_INVALID.
Result<std::string> advertised_address(std::string_view bound, std::string_view wish);

// The address of the first interface in `interfaces`, a list as getifaddrs() makes it, that is up, no loopback, and has one
// of that family which reaches further than the neighbours. Ready for a port behind it; empty: there is none.
std::string first_routable(const ifaddrs* interfaces, int family);

}  // namespace tc::node::bootstrap
