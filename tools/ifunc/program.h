// SPDX-License-Identifier: Apache-2.0
//
// The common parts of our commands' main(). Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <stdexcept>

#include "ifunc/usage.h"

namespace tc::command {

// Parses the arguments and runs what they name. The exit code: `exit_code` as that set it, 2 for wrong usage.
inline int parse_and_run(CLI::App& app, int argc, const char* const* argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "%s\n", usage_error(app, error).c_str());
    return 2;
  } catch (const std::invalid_argument&) {  // of a switch
    std::fprintf(stderr, "%s: a switch was given a value that is neither true nor false; see --help\n",
                 app.get_name().c_str());
    return 2;
  }
  return exit_code;
}

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

}  // namespace tc::command
