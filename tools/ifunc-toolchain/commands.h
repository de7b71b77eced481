// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `ifunc-toolchain` beside `build`. Each add_ function describes one to the parser and leaves a callback
// that runs it and stores the program's exit code. Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

namespace tc::command {

// `compile`: a node that compiles for others runs it once for each job (src/node/remote_compile/compile_service.h).
void add_compile(CLI::App& app, int& exit_code);
// `inspect --asm`: the machine code in an .ifunc file, or the code that its bitcode becomes for a CPU.
void add_show_assembly(CLI::App& app, int& exit_code);

}  // namespace tc::command
