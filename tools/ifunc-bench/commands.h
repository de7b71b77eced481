// SPDX-License-Identifier: Apache-2.0
//
// What `ifunc bench` measures. Each add_ function describes one benchmark to the parser and leaves a callback that runs it and
// stores the program's exit code: 0 success, 1 failure with a sentence on stderr, 2 wrong usage. Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

namespace tc::command {

void add_tsi(CLI::App& parent, int& exit_code);
void add_bulk(CLI::App& parent, int& exit_code);
void add_mixed(CLI::App& parent, int& exit_code);
void add_token(CLI::App& parent, int& exit_code);
void add_trust(CLI::App& parent, int& exit_code);
void add_dapc(CLI::App& parent, int& exit_code);
void add_graph(CLI::App& parent, int& exit_code);
void add_languages(CLI::App& parent, int& exit_code);
void add_tune(CLI::App& parent, int& exit_code);
void add_ucp_ifunc(CLI::App& parent, int& exit_code);
void add_report(CLI::App& parent, int& exit_code);
// The benchmarks' further processes; for themselves only.
void add_partner(CLI::App& parent, int& exit_code);

}  // namespace tc::command
