// SPDX-License-Identifier: Apache-2.0
//
// Questions to nodes that run, for `ifunc ping`, `ifunc stat` and others: how the node is reached, and what the command's exit code
// makes of it.
//
// Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>
#include <threechains/threechains.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ifunc/serve_options.h"
#include "ifunc/told.h"

namespace tc::command {

// One set for all commands that look at nodes. Of several addresses the greatest counts.
namespace exit_codes {
inline constexpr int ok = 0;
inline constexpr int unhealthy = 1;  // it was reached, but does not answer as it should, or is draining
inline constexpr int usage = 2;
inline constexpr int unreachable = 69;        // EX_UNAVAILABLE of sysexits.h
inline constexpr int refused = 77;            // EX_NOPERM: by keys
inline constexpr int bad_configuration = 78;  // EX_CONFIG: of this side
}  // namespace exit_codes
// "ok", "unhealthy", "unreachable", "refused"; for JSON.
std::string_view word_of(int exit_code) noexcept;
// What an error says that came while a node was connected to or asked.
int exit_code_of(tc_status_t status) noexcept;

struct AskOptions {
  std::vector<std::string> addresses;
  std::string transport;
  std::string log = "error";
  uint32_t timeout_ms = 5000;
  ServeOptions identity;
  bool json = false;

  void add_to(CLI::App& app);
};

struct Answer {
  Told told;
  uint64_t round_trip_ns = 0;
};

// The node of the command itself, and its connections, which are kept from one question to the next.
class Asker {
 public:
  // An error is one of this side's configuration.
  static Result<Asker> create(const AskOptions& options);

  // Connects where there is no connection. What else fails is the connection's or the node's.
  Result<threechains::Endpoint*> reach(const std::string& address);
  Result<Answer> ask(const std::string& address);

 private:
  Asker(threechains::Node node, uint32_t timeout_ms) : node_(std::move(node)), timeout_ms_(timeout_ms) {}

  threechains::Node node_;
  uint32_t timeout_ms_;
  std::map<std::string, threechains::Endpoint> endpoints_;
};

// Addresses as the command was given them, with numbers of a cluster resolved. Otherwise it is wrong usage.
Result<std::vector<std::string>> resolve_all(const std::vector<std::string>& addresses);

// The time now, as RFC 3339 has it.
std::string timestamp();

// Makes the Asker and calls `run` with it and the addresses; says on stderr what went wrong before. The exit code.
int run_asking(const char* name, const AskOptions& options,
               const std::function<int(Asker&, const std::vector<std::string>&)>& run);

}  // namespace tc::command
