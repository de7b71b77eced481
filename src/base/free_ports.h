// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc {

// "127.0.0.1:PORT" for `count` nodes of this machine: each port free a moment ago, different from the others, and none
// that the system gives to others by itself. TC_ERR_IO when so many are not to be had.
Result<std::vector<std::string>> free_addresses(uint32_t count);

}  // namespace tc
