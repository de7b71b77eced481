// SPDX-License-Identifier: Apache-2.0
//
// `ifunc-toolchain compile`: a node that compiles for others runs it once for each job
// (src/node/remote_compile/compile_service.h). Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

namespace tc::command {

void add_compile(CLI::App& app, int& exit_code);

}  // namespace tc::command
