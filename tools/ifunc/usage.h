// SPDX-License-Identifier: Apache-2.0
//
// The common parts of our commands' main(): parsing the arguments, and what a command says to wrong usage: which word is
// wrong, and which one may have been meant. Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace tc::command {

// Parses the arguments and runs what they name. The exit code: `exit_code` as that set it, 2 for wrong usage.
int parse_and_run(CLI::App& app, int argc, const char* const* argv, const int& exit_code);

// Runs `run`. An exception becomes a message on stderr and exit code 1.
template <class Run>
int run_program_main(const char* name, const Run& run) {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name, error.what());
    return 1;
  }
}

// One sentence about arguments that `app` did not take: "ifunc serve: there is no option '--lisen'; did you mean
// '--listen'? `ifunc serve --help` lists them". `app` is as the failed parse has left it.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace tc::command
