// SPDX-License-Identifier: Apache-2.0
//
// `ifunc inspect --asm`: the machine code in an .ifunc file, or what a CPU would make of its bitcode.
#pragma once

#include <CLI/CLI.hpp>

namespace tc::command {

// Describes the subcommand to the parser; its callback runs it and stores the program's exit code.
void add_show_assembly(CLI::App& app, int& exit_code);

}  // namespace tc::command
