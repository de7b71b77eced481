// SPDX-License-Identifier: Apache-2.0
//
// Whether a request is meant for this page. A page in somebody's browser may come from a name whose owner lets it stand for
// our address afterwards (DNS rebinding). The browser then asks us, and shows that page our answer. Such requests name the
// other host in their Host header. Nobody owns a number, or localhost.
//
// Threads: any.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tc::metrics {

// `header`: "node1:9464", "10.0.0.1", "[::1]:9464". True: it is a numeric address, localhost, or one of `names`, with any
// port. Upper and lower case are the same.
bool is_for_us(std::string_view header, std::span<const std::string> names);

}  // namespace tc::metrics
