// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.h"
#include "ifunc/serve_options.h"

namespace tc::command {

// Runs a node as a child, and starts another one when it dies of a signal, or of an error that is not one of its
// configuration: after 0.1 s, then after pauses that double up to 30 s, until a node has lived for a minute. Passes
// SIGTERM, SIGINT and SIGHUP on. Ends with the exit code of a node that has stopped by itself or was told to.
//
// Thread: the program's only one.
Result<int> supervise(ServeOptions options);

}  // namespace tc::command
