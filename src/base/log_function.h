// SPDX-License-Identifier: Apache-2.0
//
// Who takes the lines of a log in place of standard error. Levels are those of tc_log(): 0 debug to 3 error.
//
// Threads: any, one at a time.
#pragma once

#include <functional>

namespace tc {

using LogFunction = std::function<void(int level, const char* line)>;

}  // namespace tc
