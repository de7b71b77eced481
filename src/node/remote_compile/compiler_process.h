// SPDX-License-Identifier: Apache-2.0
//
// One compilation for another node, in a process of its own that ends with its deadline.
#pragma once

#include "node/remote_compile/compile_service.h"

namespace tc::node {

// Runs `compiler` on the job's bitcode and waits, at most until the job's time is up or `cancelled` is set. The object
// slice; TC_ERR_COMPILE with the compiler's words, TC_ERR_TIMEOUT, TC_ERR_MALFORMED for a slice that cannot be unpacked.
// Thread: any but the node's, as it waits.
Result<Bytes> compile(const std::filesystem::path& compiler, const CompileService::Job& job,
                      const std::atomic<bool>& cancelled);

}  // namespace tc::node
