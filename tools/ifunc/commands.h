// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of `ifunc`. Each add_ function describes one to the parser and leaves a callback that runs it
// and stores the program's exit code: 0 success, 1 failure with a sentence on stderr, 2 wrong usage, 78 a configuration
// file that is wrong. Those that look at nodes have more of them (asking.h).
// Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

#include <vector>

namespace tc::command {

void add_build(CLI::App& app);
void add_inspect(CLI::App& app, int& exit_code);
void add_serve(CLI::App& app, int& exit_code);
void add_send(CLI::App& app, int& exit_code);
// `command` is what stood behind `--`; it must outlive the parse.
void add_cluster(CLI::App& app, const std::vector<char*>& command, int& exit_code);
void add_key(CLI::App& app, int& exit_code);
// `ifunc sign` and `ifunc verify`.
void add_sign(CLI::App& app, int& exit_code);
void add_trust(CLI::App& app, int& exit_code);
void add_bench(CLI::App& app);
void add_lists(CLI::App& app);
void add_info(CLI::App& app, int& exit_code);
void add_ping(CLI::App& app, int& exit_code);
void add_stat(CLI::App& app, int& exit_code);
// `argv` is what exec_top() gets.
void add_top(CLI::App& app, char** argv, int& exit_code);

// `ifunc build` and `ifunc inspect --asm` are a program of their own because it links LLVM, `ifunc bench` because it links UCX,
// `ifunc top` because it links ncurses.
// Each replaces the process by that program, with the same arguments ("build" and what follows). Returns only when that failed.
int exec_toolchain(char** argv);
int exec_bench(char** argv);
int exec_top(char** argv);

}  // namespace tc::command
