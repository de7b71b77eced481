// SPDX-License-Identifier: Apache-2.0
//
// The configuration of a node, and the table of the options by which it is set.
//
// Thread: any, one at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log_format.h"
#include "base/result.h"
#include "node/bootstrap/bootstrap.h"
#include "target/code_store.h"
#include "transport/network/network.h"

namespace tc::node {

// Peers that may connect and run code besides the keys of the keyring: processes of our own user on this host, or all.
enum class Trust : uint8_t { user, any };
// What happens when a node that was connected to answers with a key that was never seen.
enum class FirstContact : uint8_t {
  keyring,  // remember while the keyring is empty
  remember,
  refuse,
  ask,  // refuse, so that a command can ask its user and connect again
};
enum class CompileFor : uint8_t { none, user, any };

// Which code runs in cells, besides that of keys with in=cell.
enum class Isolate : uint8_t {
  none,
  automatic,  // untrusted where this host can have cells, else none
  untrusted,  // what runs without the right to run any code
  all
};

struct Config {
  std::string name;
  std::string listen = "127.0.0.1:0";  // empty: accept nobody
  std::string advertise;               // what peers are told to connect to; empty: what follows from `listen`
  uint32_t id = 0;
  bool id_is_set = false;            // else a bootstrap gives a number
  std::vector<std::string> cluster;  // addresses by node number
  bootstrap::Options bootstrap;      // how `id` and `cluster` are learnt
  transport::NetworkOptions network;
  Trust trust = Trust::user;
  std::string key;      // this node's own: a name, or a file; empty: the one called `default`, if there is one
  std::string keyring;  // its file, or "none"; empty: the one in the user's folder
  FirstContact first_contact = FirstContact::keyring;
  std::vector<std::filesystem::path> path;
  std::vector<std::string> allowed_libraries = {"libm.so.6"};  // it computes, and does nothing else
  std::vector<std::string> allowed_exports;                    // rules of target::Policy::allow_export
  bool warm_up = false;
  size_t max_message = 256u * 1024 * 1024;
  size_t message_memory = size_t{1} << 30;  // of all messages of all peers that wait here
  uint32_t key_links = 256;                 // of each key of the keyring
  size_t source_budget = size_t{64} << 20;  // memory for bundles kept so that they can be sent again
  uint16_t hops = 64;
  uint16_t fanout = 1024;
  uint32_t execution_limit_ms = 10'000;
  uint32_t threads = 1;    // that run calls: the node's own, and workers
  std::string compile_at;  // the node that compiles bitcode for this one; empty: none
  CompileFor compile_for = CompileFor::none;
  uint32_t compile_limit_ms = 10'000;
  std::string compiler;  // path of ifunc-toolchain; empty: beside this library
  std::string log = "warn";
  std::optional<LogFormat> log_format;  // empty: auto
  bool last_words = true;
  // Takes each line of the log, at a level from 0 (debug) to 3 (error). Empty: the log goes to standard error.
  std::function<void(int level, const char* line)> log_sink;
  Isolate isolate = Isolate::none;
  uint32_t cells = 4;  // that run a call at once
  uint64_t cell_memory = uint64_t{1} << 30;
  std::string cell;  // path of threechains-cell; empty: beside this library
  target::CodeStoreOptions code;

  // Defaults that depend on the process: its name and search path.
  static Config defaults();
  // Sets one option of the table. TC_ERR_INVALID says which options or values there are.
  Status set(std::string_view key, std::string_view value);
};

// ---- The options of a node: one table, from which come tc_config_set(), the list that tc_option_at() gives to programs,
// `ifunc serve --help`, and docs/options.md.

struct Option {
  const char* group;   // the heading under which lists show it
  const char* name;    // "ring-bytes"
  const char* value;   // what a value looks like: "BYTES", "on|off", "ADDRESS:PORT"
  const char* preset;  // the value without it, or in words where that comes from; "" is none
  const char* help;    // one or two sentences
  bool repeatable;     // each value adds to those before
  Status (*set)(Config& config, std::string_view value);
};

// Ordered by group.
std::span<const Option> options() noexcept;

}  // namespace tc::node
