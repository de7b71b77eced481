// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::bench {

// "127.0.0.1:PORT" for `count` nodes, each port free a moment ago and different from the others.
Result<std::vector<std::string>> free_addresses(uint32_t count);

}  // namespace tc::bench
