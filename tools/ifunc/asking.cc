// SPDX-License-Identifier: Apache-2.0
#include "ifunc/asking.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

#include "base/clock.h"
#include "ifunc/arguments.h"
#include "ifunc/attempt.h"
#include "trust/grant.h"

namespace tc::command {

std::string_view word_of(int exit_code) noexcept {
  switch (exit_code) {
    case exit_codes::ok: return "ok";
    case exit_codes::unhealthy: return "unhealthy";
    case exit_codes::usage: return "no_address";
    case exit_codes::refused: return "refused";
    default: return "unreachable";
  }
}

int exit_code_of(tc_status_t status) noexcept {
  switch (status) {
    case TC_OK: return exit_codes::ok;
    case TC_ERR_DENIED: return exit_codes::refused;
    case TC_ERR_INVALID:
      return exit_codes::usage;  // that is no address
    // It is there, and something is wrong with it or with what it says.
    case TC_ERR_TIMEOUT:
    case TC_ERR_BUSY:
    case TC_ERR_VERSION:
    case TC_ERR_MALFORMED:
    case TC_ERR_INTERNAL: return exit_codes::unhealthy;
    default: return exit_codes::unreachable;
  }
}

void AskOptions::add_to(CLI::App& app) {
  app.add_option("ADDRESS", addresses, "ADDRESS:PORT or unix:PATH of a node, or its number inside `ifunc cluster`")
      ->required();
  app.add_option("--timeout", timeout_ms, "Milliseconds to wait for the connection, and for each answer")
      ->check(CLI::Range(1u, 86'400'000u))
      ->capture_default_str();
  app.add_option("--transport", transport,
                 "How frames reach the node. `auto`, unless TC_TRANSPORT is set: shared memory or TCP")
      ->check(CLI::IsMember({"auto", "shm", "unix", "tcp", "ucx", "ucx-put"}));
  app.add_option("--log", log, "Level of messages on stderr")
      ->check(CLI::IsMember({"off", "error", "warn", "info", "debug"}))
      ->capture_default_str();
  app.add_flag("--json", json, "One JSON object for each node, a line each");
  identity.add_identity_to(app);
}

// ---- Asking

Result<Asker> Asker::create(const AskOptions& options) {
  TC_ASSIGN(auto node, attempt([&] {
              threechains::Config config;
              // No code runs in this process, and nobody connects to it: it only waits for answers.
              config.set("objects", "off").set("bitcode", "off").set("listen", "none").set("log", options.log);
              if (!options.transport.empty()) config.set("transport", options.transport);
              for (const auto& [name, value] : options.identity.settings) config.set(name, value);
              return threechains::Node(config);
            }));
  return Asker(std::move(node), options.timeout_ms);
}

Result<threechains::Endpoint*> Asker::reach(const std::string& address) {
  if (const auto known = endpoints_.find(address); known != endpoints_.end()) {
    if (known->second.status() == TC_OK) return &known->second;
    known->second.abandon();
    endpoints_.erase(known);
  }
  auto endpoint = attempt([&] { return node_.connect(address, threechains::milliseconds(timeout_ms_)); });
  if (!endpoint) {
    auto error = std::move(endpoint).error();
    // Nobody greeted: it is not known that a node is there.
    if (error.code == TC_ERR_TIMEOUT) error.code = TC_ERR_DISCONNECTED;
    return fail(std::move(error));
  }
  return &endpoints_.emplace(address, std::move(*endpoint)).first->second;
}

Result<Answer> Asker::ask(const std::string& address) {
  TC_ASSIGN(auto* const endpoint, reach(address));
  const threechains::milliseconds limit(timeout_ms_);
  const auto asked_ns = now_ns();
  TC_ASSIGN(const auto future, attempt([&] { return endpoint->ask_statistics(limit); }));
  // A little longer than the question itself, whose own error at its deadline says more.
  TC_ASSIGN(const auto bytes, attempt([&] { return future.bytes(limit + threechains::milliseconds(200)); }));
  const auto round_trip_ns = now_ns() - asked_ns;
  TC_ASSIGN(auto told, parse_told({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  return Answer{.told = std::move(told), .round_trip_ns = round_trip_ns};
}

// ---- For the commands

Result<std::vector<std::string>> resolve_all(const std::vector<std::string>& addresses) {
  std::vector<std::string> all;
  for (const auto& one : addresses) {
    TC_ASSIGN(auto address, resolve_target(one, std::getenv("TC_CLUSTER_ADDRESSES")));
    if (!is_path(address)) TC_CHECK(parse_address(address));
    all.push_back(std::move(address));
  }
  return all;
}

std::string timestamp() { return trust::to_text(trust::Time(std::chrono::seconds(wall_clock_s()))); }

int run_asking(const char* name, const AskOptions& options,
               const std::function<int(Asker&, const std::vector<std::string>&)>& run) {
  const auto addresses = resolve_all(options.addresses);
  if (!addresses) {
    fmt::print(stderr, "ifunc {}: {}\n", name, addresses.error().message);
    return exit_codes::usage;
  }
  auto asker = Asker::create(options);
  if (!asker) {
    fmt::print(stderr, "ifunc {}: {}\n", name, asker.error().message);
    return exit_codes::bad_configuration;
  }
  return run(*asker, *addresses);
}

}  // namespace tc::command
