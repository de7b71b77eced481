// SPDX-License-Identifier: Apache-2.0
//
// `ifunc inspect --asm`: the machine code in an .ifunc file, or the code that its bitcode becomes for a CPU.
// Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

namespace tc::command {

// Describes the subcommand to the parser; its callback runs it and stores the program's exit code.
void add_show_assembly(CLI::App& app, int& exit_code);

}  // namespace tc::command
