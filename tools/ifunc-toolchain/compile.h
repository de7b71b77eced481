// SPDX-License-Identifier: Apache-2.0
//
// `ifunc-toolchain compile`: what a node that compiles for others runs for each job (src/node/compile_service.h).
#pragma once

#include <CLI/CLI.hpp>

namespace tc::command {

void add_compile(CLI::App& app, int& exit_code);

}  // namespace tc::command
