// SPDX-License-Identifier: Apache-2.0
#include "node/config.h"

#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <functional>
#include <map>

namespace tc::node {

namespace {

template <class T>
Status parse_number(std::string_view key, std::string_view value, T& out, T least, T most) {
  T number{};
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc{} || end != value.data() + value.size() || number < least || number > most)
    return fail(TC_ERR_INVALID, "{} is '{}' when it is a whole number from {} to {}", key, value, least, most);
  out = number;
  return {};
}

Status parse_switch(std::string_view key, std::string_view value, bool& out) {
  if (value != "on" && value != "off") return fail(TC_ERR_INVALID, "{} is '{}' when it is on or off", key, value);
  out = value == "on";
  return {};
}

Status parse_power_of_two(std::string_view key, std::string_view value, size_t& out, size_t least, size_t most) {
  size_t number = 0;
  TC_CHECK(parse_number(key, value, number, least, most));
  if ((number & (number - 1)) != 0) return fail(TC_ERR_INVALID, "{} is {} when it is a power of two", key, number);
  out = number;
  return {};
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const auto end = text.find(separator);
    if (const auto part = text.substr(0, end); !part.empty()) parts.emplace_back(part);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return parts;
}

Status parse_log(std::string_view value, std::string& out) {
  for (const auto* level : {"off", "error", "warn", "info", "debug"})
    if (value == level) return out = value, Status{};
  return fail(TC_ERR_INVALID, "log is '{}' when it is off, error, warn, info or debug", value);
}

Status parse_trust(std::string_view value, Trust& out) {
  if (value != "user" && value != "any")
    return fail(TC_ERR_INVALID, "trust is '{}' when it is user (processes of the same user on this host) or any",
                value);
  out = value == "any" ? Trust::any : Trust::user;
  return {};
}

Status parse_compile_for(std::string_view value, CompileFor& out) {
  if (value != "none" && value != "user" && value != "any")
    return fail(
        TC_ERR_INVALID,
        "compile-for is '{}' when it is none, user (processes of the same user on this host) or any (peers that "
        "are trusted)",
        value);
  out = value == "any" ? CompileFor::any : value == "user" ? CompileFor::user : CompileFor::none;
  return {};
}

Status parse_transport(std::string_view value, transport::Choice& out) {
  TC_ASSIGN(out, transport::parse_choice(value));
  return {};
}

using Setter = std::function<Status(Config&, std::string_view)>;

// The table of keys: one line each, so that the list in threechains.h is easy to compare with it.
const std::map<std::string_view, Setter, std::less<>>& setters() {
  static const std::map<std::string_view, Setter, std::less<>> table{
      {"name", [](Config& c, std::string_view v) { return c.name = v.substr(0, 100), Status{}; }},
      {"listen", [](Config& c, std::string_view v) { return c.listen = v == "none" ? "" : v, Status{}; }},
      {"advertise", [](Config& c, std::string_view v) { return c.advertise = v, Status{}; }},
      {"id",
       [](Config& c, std::string_view v) -> Status {
         TC_CHECK(parse_number<uint32_t>("id", v, c.id, 0, 1u << 24));
         c.id_is_set = true;
         return {};
       }},
      {"cluster", [](Config& c, std::string_view v) { return c.cluster = split(v, ','), Status{}; }},
      {"bootstrap", [](Config& c, std::string_view v) { return bootstrap::parse(v, c.bootstrap); }},
      {"nodes",
       [](Config& c, std::string_view v) {
         return parse_number<uint32_t>("nodes", v, c.bootstrap.nodes, 1, bootstrap::max_nodes);
       }},
      {"bootstrap-timeout",
       [](Config& c, std::string_view v) {
         return parse_number<uint32_t>("bootstrap-timeout", v, c.bootstrap.timeout_ms, 1, 1u << 31);
       }},
      {"pmix-plugin", [](Config& c, std::string_view v) { return c.bootstrap.pmix_plugin = v, Status{}; }},
      {"transport", [](Config& c, std::string_view v) { return parse_transport(v, c.network.choice); }},
      {"ucx-tls", [](Config& c, std::string_view v) { return c.network.fabric.tls = v, Status{}; }},
      {"ucx-devices", [](Config& c, std::string_view v) { return c.network.fabric.devices = v, Status{}; }},
      {"ucx-plugin", [](Config& c, std::string_view v) { return c.network.fabric_plugin = v, Status{}; }},
      {"trust", [](Config& c, std::string_view v) { return parse_trust(v, c.trust); }},
      {"path",
       [](Config& c, std::string_view v) {
         c.path.clear();
         for (const auto& directory : split(v, ':')) c.path.emplace_back(directory);
         return Status{};
       }},
      {"allow-lib", [](Config& c, std::string_view v) { return c.allowed_libraries.emplace_back(v), Status{}; }},
      {"allow-export", [](Config& c, std::string_view v) { return c.allowed_exports.emplace_back(v), Status{}; }},
      {"objects", [](Config& c, std::string_view v) { return parse_switch("objects", v, c.code.use_objects); }},
      {"bitcode", [](Config& c, std::string_view v) { return parse_switch("bitcode", v, c.code.use_bitcode); }},
      {"tune", [](Config& c, std::string_view v) { return parse_switch("tune", v, c.code.tune); }},
      {"warm-up", [](Config& c, std::string_view v) { return parse_switch("warm-up", v, c.warm_up); }},
      {"cache-dir", [](Config& c, std::string_view v) { return c.code.cache_dir = v, Status{}; }},
      {"jit-plugin", [](Config& c, std::string_view v) { return c.code.jit_plugin = v, Status{}; }},
      {"code-budget",
       [](Config& c, std::string_view v) {
         return parse_number<size_t>("code-budget", v, c.code.budget_bytes, 4096, size_t{1} << 40);
       }},
      {"max-message",
       [](Config& c, std::string_view v) {
         return parse_number<size_t>("max-message", v, c.max_message, 1024, size_t{1} << 31);
       }},
      {"message-memory",
       [](Config& c, std::string_view v) {
         return parse_number<size_t>("message-memory", v, c.message_memory, 1u << 20, size_t{1} << 44);
       }},
      {"source-budget",
       [](Config& c, std::string_view v) {
         return parse_number<size_t>("source-budget", v, c.source_budget, 0, size_t{1} << 40);
       }},
      {"hops", [](Config& c, std::string_view v) { return parse_number<uint16_t>("hops", v, c.hops, 0, 65535); }},
      {"fan-out",
       [](Config& c, std::string_view v) { return parse_number<uint16_t>("fan-out", v, c.fanout, 0, 65535); }},
      {"execution-limit",
       [](Config& c, std::string_view v) {
         return parse_number<uint32_t>("execution-limit", v, c.execution_limit_ms, 0, 1u << 31);
       }},
      {"compile-at", [](Config& c, std::string_view v) { return c.compile_at = v, Status{}; }},
      {"compile-for", [](Config& c, std::string_view v) { return parse_compile_for(v, c.compile_for); }},
      {"compile-limit",
       [](Config& c, std::string_view v) {
         return parse_number<uint32_t>("compile-limit", v, c.compile_limit_ms, 1, 3'600'000);
       }},
      {"compiler", [](Config& c, std::string_view v) { return c.compiler = v, Status{}; }},
      {"ring-bytes",
       [](Config& c, std::string_view v) {
         return parse_power_of_two("ring-bytes", v, c.network.ring_bytes, 4096, size_t{1} << 30);
       }},
      {"batch-bytes",
       [](Config& c, std::string_view v) {
         return parse_number<size_t>("batch-bytes", v, c.network.fabric.batch_bytes, 1024, size_t{1} << 20);
       }},
      {"window-bytes",
       [](Config& c, std::string_view v) {
         return parse_number<size_t>("window-bytes", v, c.network.fabric.window_bytes, 4096, size_t{1} << 30);
       }},
      {"log", [](Config& c, std::string_view v) { return parse_log(v, c.log); }},
  };
  return table;
}

std::string process_label() {
  char host[65] = {};
  if (::gethostname(host, sizeof host - 1) != 0) return fmt::format("pid{}", ::getpid());
  return fmt::format("{}:{}", host, ::getpid());
}

}  // namespace

Config Config::defaults() {
  Config config;
  config.name = process_label();
  config.path.emplace_back(".");
  if (const char* path = std::getenv("TC_IFUNC_PATH"); path != nullptr)
    for (const auto& directory : split(path, ':')) config.path.emplace_back(directory);
  if (const char* name = std::getenv("TC_TRANSPORT"); name != nullptr)
    if (const auto choice = transport::parse_choice(name)) config.network.choice = *choice;
  return config;
}

Status Config::set(std::string_view key, std::string_view value) {
  if (const auto found = setters().find(key); found != setters().end()) return found->second(*this, value);
  std::string keys;
  for (const auto& [name, setter] : setters()) keys += (keys.empty() ? "" : ", ") + std::string(name);
  return fail(TC_ERR_INVALID, "there is no option '{}'; there are: {}", key, keys);
}

}  // namespace tc::node
