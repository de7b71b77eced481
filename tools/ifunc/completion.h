// SPDX-License-Identifier: Apache-2.0
//
// `ifunc completion` and `ifunc man`: what shells and manual pages say about the commands. Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

namespace tc::command {

// Describes both to the parser; they tell of all commands that `app` has when they run.
void add_completion(CLI::App& app, int& exit_code);

}  // namespace tc::command
