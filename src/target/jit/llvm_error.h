// SPDX-License-Identifier: Apache-2.0
//
// LLVM's errors in our form, with LLVM's own words.
//
// Thread: any.
#pragma once

#include <llvm/Support/Error.h>

#include "base/result.h"

namespace tc::target::jit {

inline std::unexpected<Error> compile_error(std::string_view doing, llvm::Error error) {
  return fail(TC_ERR_COMPILE, "{}: {}", doing, llvm::toString(std::move(error)));
}

}  // namespace tc::target::jit
