// SPDX-License-Identifier: Apache-2.0
//
// The same test with a process for each node. They are stopped for a while, or killed and started anew, at any moment.
//
// Thread: the only one of its process.
#pragma once

#include "check.h"
#include "scenario.h"

namespace tc::property {

Findings run_in_processes(const Wanted& wanted, uint64_t seed, const std::vector<std::string>& addresses);

}  // namespace tc::property
