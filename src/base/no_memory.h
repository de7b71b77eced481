// SPDX-License-Identifier: Apache-2.0
//
// An error for functions that may not throw.
//
// Threads: any.
#pragma once

#include <new>
#include <string_view>

#include "base/result.h"

namespace tc {

// Where there is no memory for the sentence, it says that: short enough to need none.
inline Error error_in_any_case(tc_status_t code, std::string_view sentence) noexcept {
  Error error{code, {}};
  try {
    error.message = sentence;
  } catch (const std::bad_alloc&) {
    error.message = "no memory";
  }
  return error;
}

}  // namespace tc
