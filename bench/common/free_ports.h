// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::bench {

// "127.0.0.1:PORT" for `count` nodes, each port free a moment ago, different from the others,
// and none that the system gives to others by itself.
Result<std::vector<std::string>> free_addresses(uint32_t count);

}  // namespace tc::bench
