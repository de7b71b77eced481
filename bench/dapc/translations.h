// SPDX-License-Identifier: Apache-2.0
//
// examples/05-pointer-chase/chaser.c in other languages, to be measured beside it. Threads: any.
#pragma once

#include <string>

#include "base/bytes.h"
#include "dapc/mode.h"

namespace tc::bench {

// "julia" or "rust".
ChaseMode mode_in(const std::string& language);
// TC_ERR_COMPILE when the language's compiler is not on this machine; the servers need none.
Result<Bytes> build_chaser(const std::string& language);

}  // namespace tc::bench
