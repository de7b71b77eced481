// SPDX-License-Identifier: Apache-2.0
//
// The JIT plug-in links libLLVM.so, unless the build is self-contained. Where a program has loaded another LLVM, without
// symbol versions and for all to see (TensorFlow and Triton bring such), the loader would bind libLLVM.so to that one's
// functions, and registering the same command-line options twice ends the process. So it is looked for before.
//
// Threads: any.
#pragma once

#include "base/result.h"

namespace tc::target {

// TC_ERR_UNSUPPORTED when the plug-in must not be loaded into this process; the sentence names the file that is in the way.
Status check_no_foreign_llvm();

}  // namespace tc::target
