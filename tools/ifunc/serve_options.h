// SPDX-License-Identifier: Apache-2.0
//
// What `ifunc serve` can be told; `ifunc cluster` takes the same and hands it on to its nodes.
#pragma once

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::command {

struct ServeOptions {
  std::vector<std::string> data;     // NAME=FILE[:ro]
  std::vector<std::string> scratch;  // NAME=BYTES
  std::vector<std::string> allowed_libraries;
  std::vector<std::string> allowed_exports;
  std::vector<std::string> ifuncs;  // files to register, for tc_inject()
  std::string trust = "user";
  std::string transport;
  std::string ucx_devices;
  std::string cache_dir;
  std::string compile_at;
  std::string compile_for = "none";
  unsigned compile_limit_ms = 10'000;
  std::string code_budget = "64M";
  std::string log = "warn";
  std::string target_args_data;
  bool no_bitcode = false;
  bool no_object = false;
  bool warm_up = false;
  bool stats = false;

  // Where this node stands; a cluster sets these itself.
  std::string listen = "127.0.0.1:0";
  std::string name;
  std::string advertise;
  std::optional<unsigned> id;
  std::string cluster;
  std::string bootstrap = "none";
  unsigned nodes = 0;  // 0: not said
  unsigned bootstrap_timeout_ms = 30'000;
  std::string ready_file;

  // Describes the options to the parser: those that nodes of a cluster share, and a single node's own.
  void add_shared_to(CLI::App& app);
  void add_own_to(CLI::App& app);

  // The same for one node of a cluster: `{id}` in the files of `data` becomes its number.
  ServeOptions of_node(unsigned id) const;

  // The arguments behind "serve" that mean the same again.
  std::vector<std::string> arguments() const;

  // Options that contradict each other or would be unsafe: TC_ERR_INVALID, TC_ERR_DENIED.
  Status check() const;
};

// Runs a node until SIGTERM or SIGINT.
Status serve(const ServeOptions& options);

}  // namespace tc::command
