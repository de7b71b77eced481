// SPDX-License-Identifier: Apache-2.0
#include "ifunc/serve_options.h"

#include <threechains/threechains.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/settings.h"
#include "ifunc/arguments.h"
#include "ifunc/attempt.h"

namespace tc::command {

namespace {

// Where a node stands; a cluster sets these for each of its nodes.
constexpr std::array<std::string_view, 8> own_options = {"name",    "listen",    "advertise", "id",
                                                         "cluster", "bootstrap", "nodes",     "bootstrap-timeout"};

constexpr std::array<std::string_view, 5> identity_options = {"key", "keyring", "trust-network", "first-contact",
                                                              "tls-plugin"};

// What a file may set besides the options of the node. --ready-file is for the one who starts it.
constexpr std::array<KnownSetting, 9> settings_of_the_command = {{{"data", "NAME=FILE[:ro]", true},
                                                                  {"scratch", "NAME=BYTES", true},
                                                                  {"ifunc", "FILE.ifunc", true},
                                                                  {"target-args-data", "NAME"},
                                                                  {"drain", "MILLISECONDS"},
                                                                  {"stats", "on|off"},
                                                                  {"metrics", "ADDRESS:PORT"},
                                                                  {"metrics-host", "NAME", true},
                                                                  {"metrics-open", "on|off"}}};

bool is_switch(const tc_option_t* option) { return std::string_view(tc_option_value(option)) == "on|off"; }

const tc_option_t* option_named(std::string_view name) {
  for (size_t i = 0; i < tc_option_count(); ++i)
    if (name == tc_option_name(tc_option_at(i))) return tc_option_at(i);
  return nullptr;
}

void add_switch(CLI::App& app, ServeOptions& options, const tc_option_t* option) {
  const std::string name = tc_option_name(option);
  auto names = fmt::format("--{0},!--no-{0}", name);
  if (name == "objects") names += ",!--no-object";  // as `ifunc build` has it
  app.add_flag_function(
         names, [&options, name](int64_t times) { options.set(name, times > 0 ? "on" : "off"); },
         fmt::format("{} Default: {}", tc_option_help(option), tc_option_default(option)))
      ->group(tc_option_group(option));
}

void add_value(CLI::App& app, ServeOptions& options, const tc_option_t* option) {
  const std::string name = tc_option_name(option);
  auto help = std::string(tc_option_help(option));
  if (tc_option_repeatable(option) != 0) help += " May be repeated";
  if (const std::string_view preset = tc_option_default(option); !preset.empty())
    help += fmt::format(" Default: {}", preset);
  CLI::Option* added = nullptr;
  if (tc_option_repeatable(option) != 0)
    added = app.add_option_function<std::vector<std::string>>(
        "--" + name,
        [&options, name](const std::vector<std::string>& values) {
          for (const auto& value : values) options.set(name, value);
        },
        help);
  else
    added = app.add_option_function<std::string>(
        "--" + name, [&options, name](const std::string& value) { options.set(name, value); }, help);
  added->type_name(tc_option_value(option))->allow_extra_args(false)->group(tc_option_group(option));
}

void add_options(CLI::App& app, ServeOptions& options, bool own) {
  for (size_t i = 0; i < tc_option_count(); ++i) {
    const auto* const option = tc_option_at(i);
    if ((std::ranges::find(own_options, tc_option_name(option)) != own_options.end()) != own) continue;
    if (is_switch(option))
      add_switch(app, options, option);
    else
      add_value(app, options, option);
  }
}

// An address in an option that the library takes as any text.
Status check_address(std::string_view name, std::string_view value) {
  if (name == "listen" && (value.empty() || value == "none" || value.starts_with("fd:") || is_path(value))) return {};
  if (name == "compile-at" && value.empty()) return {};
  if (name == "listen" || name == "compile-at") TC_CHECK(parse_address(value));
  return {};
}

// Those who ask for metrics do not prove who they are.
Status check_metrics(const std::string& address, bool is_open) {
  if (address.empty()) return {};
  TC_ASSIGN(const auto where, parse_address(address));
  if (is_open || is_loopback(where)) return {};
  return fail(
      TC_ERR_DENIED,
      "--metrics {} can be reached from other machines, and whoever asks there is told what this node runs and for "
      "how many: name a loopback address, or say `--metrics-open` if you mean that",
      address);
}

// Takes settings of a file. Those of the node are tried on a configuration, which knows what is wrong with them.
class FileSettings {
 public:
  Status take(std::string_view name, std::string_view value) {
    if (option_named(name) != nullptr) {
      TC_CHECK(check_address(name, value));
      TC_CHECK(attempt([&] { tried_.set(std::string(name), std::string(value)); }));
      options_.set(name, value);
      return {};
    }
    if (name == "data") {
      TC_CHECK(parse_data(value));
      options_.data.emplace_back(value);
    } else if (name == "scratch") {
      TC_CHECK(parse_scratch(value));
      options_.scratch.emplace_back(value);
    } else if (name == "ifunc") {
      options_.ifuncs.emplace_back(value);
    } else if (name == "target-args-data") {
      options_.target_args_data = value;
    } else if (name == "metrics") {
      TC_CHECK(parse_address(value));
      options_.metrics = value;
    } else if (name == "metrics-host") {
      options_.metrics_hosts.emplace_back(value);
    } else if (name == "metrics-open") {
      options_.metrics_open = value == "on";
    } else if (name == "stats") {
      options_.stats = value == "on";
    } else if (name == "drain") {
      uint32_t number = 0;
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
      if (error != std::errc{} || end != value.data() + value.size())
        return fail(TC_ERR_INVALID, "drain is '{}' when it is a whole number from 0 to {}", value, UINT32_MAX);
      options_.drain = number;
    }
    return {};
  }
  ServeOptions& options() { return options_; }

 private:
  threechains::Config tried_;
  ServeOptions options_;
};

}  // namespace

void ServeOptions::set(std::string_view name, std::string_view value) {
  const auto* const option = option_named(name);
  if (option == nullptr || tc_option_repeatable(option) == 0)
    std::erase_if(settings, [&](const auto& setting) { return setting.first == name; });
  settings.emplace_back(name, value);
}

std::string ServeOptions::get(std::string_view name) const {
  const auto found = std::ranges::find(settings, name, &decltype(settings)::value_type::first);
  return found != settings.end() ? found->second : "";
}

void ServeOptions::add_shared_to(CLI::App& app) {
  app.add_option("--data", data,
                 "Map FILE and let ifuncs find it by tc_data(NAME). Changes reach the file, unless "
                 "it is not writable or `:ro` is appended. May be repeated")
      ->type_name("NAME=FILE[:ro]")
      ->allow_extra_args(false);
  app.add_option("--scratch", scratch,
                 "Give ifuncs BYTES of memory that they find by tc_data(NAME), zero at first. K, M, G. May be repeated")
      ->type_name("NAME=BYTES")
      ->allow_extra_args(false);
  app.add_option("--target-args-data", target_args_data,
                 "The data (of --data or --scratch) whose address ifuncs get as target_args")
      ->type_name("NAME");
  app.add_option("--ifunc", ifuncs,
                 "Register this file, so that running ifuncs can tc_inject() it by name. May be "
                 "repeated")
      ->type_name("FILE.ifunc")
      ->allow_extra_args(false);
  app.add_option(
         "--config", config_file,
         "A file in TOML with options by their names here, one `name = value` a line; those given here count more")
      ->type_name("FILE");
  app.add_option(
         "--drain", drain,
         "How long the calls that run or wait when SIGTERM or SIGINT comes may go on, while new ones are refused; then "
         "the node stops without them")
      ->type_name("MILLISECONDS")
      ->default_str(std::to_string(drain_ms()));
  app.add_flag(
      "--stats", stats,
      "Print the node's numbers when it stops, one `stat NAME VALUE` a line (`ifunc statistics` explains them)");
  add_options(app, *this, false);
}

void ServeOptions::add_own_to(CLI::App& app) {
  app.add_flag(
      "--supervise", supervise,
      "Run the node as a child process, and start it again when it dies of a signal or an error: after 0.1 s at "
      "first, after 30 s at most");
  app.add_flag("--quiet-stop", quiet_stop, "Do not log that the node stops, for a program that stops it")->group("");
  app.add_option("--ready-file", ready_file, "Write the address to this file once peers can connect")
      ->type_name("FILE");
  app.add_option("--metrics", metrics,
                 "Serve the node's numbers there by HTTP, for Prometheus (/metrics), with /healthz and /readyz: "
                 "docs/metrics.md")
      ->type_name("ADDRESS:PORT");
  app.add_option(
         "--metrics-host", metrics_hosts,
         "A name by which others ask for --metrics; numbers, localhost and the name in --metrics need none. May be "
         "repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  app.add_flag("--metrics-open", metrics_open,
               "--metrics may be an address that other machines can reach; who asks there does not prove who they are");
  add_options(app, *this, true);
}

void ServeOptions::add_identity_to(CLI::App& app) {
  for (const auto name : identity_options)
    if (const auto* const option = option_named(name); option != nullptr) add_value(app, *this, option);
}

Result<size_t> ServeOptions::read_config_file() {
  if (config_file.empty()) return 0;
  std::vector<KnownSetting> known(settings_of_the_command.begin(), settings_of_the_command.end());
  for (size_t i = 0; i < tc_option_count(); ++i) {
    const auto* const option = tc_option_at(i);
    known.push_back({tc_option_name(option), tc_option_value(option), tc_option_repeatable(option) != 0});
  }
  FileSettings file;
  TC_ASSIGN(const auto count, read_settings(config_file, known, [&](std::string_view name, std::string_view value) {
              return file.take(name, value);
            }));
  auto& merged = file.options();
  for (const auto& [name, value] : settings) merged.set(name, value);
  settings = std::move(merged.settings);
  for (const auto& [ours, theirs] : {std::pair{&data, &merged.data},
                                     {&scratch, &merged.scratch},
                                     {&ifuncs, &merged.ifuncs},
                                     {&metrics_hosts, &merged.metrics_hosts}})
    ours->insert(ours->begin(), theirs->begin(), theirs->end());
  if (target_args_data.empty()) target_args_data = merged.target_args_data;
  if (!drain) drain = merged.drain;
  stats = stats || merged.stats;
  if (metrics.empty()) metrics = merged.metrics;
  metrics_open = metrics_open || merged.metrics_open;
  config_file.clear();
  return count;
}

std::map<std::string, std::vector<std::string>> ServeOptions::values() const {
  std::map<std::string, std::vector<std::string>> values = {{"data", data}, {"scratch", scratch}, {"ifunc", ifuncs}};
  values["target-args-data"] = {target_args_data};
  values["drain"] = {std::to_string(drain_ms())};
  values["stats"] = {stats ? "on" : "off"};
  for (size_t i = 0; i < tc_option_count(); ++i) values[tc_option_name(tc_option_at(i))];
  for (const auto& [name, value] : settings)
    if (value != tc_option_default(option_named(name))) values[name].push_back(value);
  return values;
}

ServeOptions ServeOptions::of_node(unsigned node) const {
  static constexpr std::string_view placeholder = "{id}";
  ServeOptions options = *this;
  const auto number = std::to_string(node);
  options.set("id", number);
  for (auto& one : options.data)
    for (size_t at = 0; (at = one.find(placeholder, at)) != std::string::npos; at += number.size())
      one.replace(at, placeholder.size(), number);
  return options;
}

std::vector<std::string> ServeOptions::arguments() const {
  std::vector<std::string> list;
  const auto add = [&](const std::string& option, const std::string& value) {
    if (value.empty()) return;
    list.push_back(option);
    list.push_back(value);
  };
  for (const auto& one : data) add("--data", one);
  for (const auto& one : scratch) add("--scratch", one);
  for (const auto& one : ifuncs) add("--ifunc", one);
  add("--config", config_file);
  add("--target-args-data", target_args_data);
  add("--ready-file", ready_file);
  add("--metrics", metrics);
  for (const auto& one : metrics_hosts) add("--metrics-host", one);
  add("--drain", std::to_string(drain_ms()));
  if (stats) list.push_back("--stats");
  if (metrics_open) list.push_back("--metrics-open");
  if (supervise) list.push_back("--supervise");
  if (quiet_stop) list.push_back("--quiet-stop");
  for (const auto& [name, value] : settings) {
    if (is_switch(option_named(name)))
      list.push_back((value == "on" ? "--" : "--no-") + name);
    else
      list.push_back(fmt::format("--{}={}", name, value));
  }
  return list;
}

Status ServeOptions::check() const {
  TC_CHECK(check_metrics(metrics, metrics_open));
  for (const auto& [name, value] : settings) TC_CHECK(check_address(name, value));
  for (const auto& [name, value] : settings)
    if (name == "trust-network" && value.ends_with("/0") && get("trust") != "any")
      return fail(
          TC_ERR_DENIED,
          "--trust-network {} is every network there is, so everybody who can reach this node could run any code "
          "with this process's rights: name your own network, or say `--trust any` if you mean that",
          value);
  if (get("bitcode") == "off" && get("objects") == "off")
    return fail(TC_ERR_INVALID, "--no-bitcode and --no-objects together leave no code that could run");
  bool found = target_args_data.empty();
  for (const auto& text : data) {
    TC_ASSIGN(const auto option, parse_data(text));
    found = found || option.name == target_args_data;
  }
  for (const auto& text : scratch) {
    TC_ASSIGN(const auto option, parse_scratch(text));
    found = found || option.name == target_args_data;
  }
  if (!found)
    return fail(TC_ERR_INVALID, "--target-args-data {}: no --data or --scratch has that name", target_args_data);
  return {};
}

}  // namespace tc::command
