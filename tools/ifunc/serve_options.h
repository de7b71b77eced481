// SPDX-License-Identifier: Apache-2.0
//
// What `ifunc serve` can be told: the options of a node, from the library's own table, and what the command adds. `ifunc
// cluster` takes the same and hands it on to its nodes.
#pragma once

#include <CLI/CLI.hpp>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tc::command {

struct ServeOptions {
  std::vector<std::string> data;     // NAME=FILE[:ro]
  std::vector<std::string> scratch;  // NAME=BYTES
  std::vector<std::string> ifuncs;   // files to register, for tc_inject()
  std::string target_args_data;
  std::string config_file;
  std::string ready_file;
  std::string metrics;                     // ADDRESS:PORT
  std::vector<std::string> metrics_hosts;  // names by which others ask there
  bool metrics_open = false;               // it may be one that others can reach
  std::optional<uint32_t> drain;           // drain_ms(), when it was set
  bool stats = false;
  bool supervise = false;   // the node is a child, which is started again when it dies
  bool quiet_stop = false;  // it is not logged that the node stops

  // Options of the node by name, in the order in which they are to be set.
  std::vector<std::pair<std::string, std::string>> settings;
  // Replaces what was set before, or adds to it when the option is repeatable.
  void set(std::string_view name, std::string_view value);
  // Empty when it was not set.
  std::string get(std::string_view name) const;

  // From SIGTERM on, for the calls that run or wait then.
  uint32_t drain_ms() const { return drain.value_or(10'000); }

  // Describes the options to the parser: those that nodes of a cluster share, and a single node's own.
  void add_shared_to(CLI::App& app);
  void add_own_to(CLI::App& app);
  // And those by which a node that calls others proves who it is, and knows them: for `ifunc send`.
  void add_identity_to(CLI::App& app);

  // Takes in what the file says that was not said otherwise, and returns how many options it sets. The errors of
  // read_settings(); then nothing is changed.
  Result<size_t> read_config_file();

  // All options that a file can set, by name; what a node's option is without being set counts as not set.
  std::map<std::string, std::vector<std::string>> values() const;

  // The same for one node of a cluster: `{id}` in the files of `data` becomes its number.
  ServeOptions of_node(unsigned id) const;

  // The arguments behind "serve" that mean the same again: with the file, unless it was read.
  std::vector<std::string> arguments() const;

  // Options that contradict each other or would be unsafe: TC_ERR_INVALID, TC_ERR_DENIED.
  Status check() const;
};

// The exit code for a configuration that is wrong: EX_CONFIG of <sysexits.h>. Supervisors need not try again.
constexpr int exit_bad_configuration = 78;

// Runs a node until SIGTERM or SIGINT. `given`: the options without those of the file that they name, which SIGHUP reads
// again. The exit code.
Result<int> serve(ServeOptions options, ServeOptions given);

}  // namespace tc::command
