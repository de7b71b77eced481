// SPDX-License-Identifier: Apache-2.0
#include "ifunc/serve_options.h"

#include <threechains/threechains.h>

#include <algorithm>
#include <array>

#include "base/file.h"
#include "ifunc/arguments.h"

namespace tc::command {

namespace {

// Where a node stands; a cluster sets these for each of its nodes.
constexpr std::array<std::string_view, 8> own_options = {"name",    "listen",    "advertise", "id",
                                                         "cluster", "bootstrap", "nodes",     "bootstrap-timeout"};

constexpr std::array<std::string_view, 5> identity_options = {"key", "keyring", "trust-network", "first-contact",
                                                              "tls-plugin"};

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
         "Options of the node, one `name = value` a line, as they are called below; those given here count more")
      ->type_name("FILE");
  app.add_option("--drain", drain_ms,
                 "How long the ifunc that runs when SIGTERM or SIGINT comes may go on; then the node stops without it")
      ->type_name("MILLISECONDS")
      ->capture_default_str();
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
  add_options(app, *this, true);
}

void ServeOptions::add_identity_to(CLI::App& app) {
  for (const auto name : identity_options)
    if (const auto* const option = option_named(name); option != nullptr) add_value(app, *this, option);
}

Status ServeOptions::read_config_file() {
  if (config_file.empty()) return {};
  TC_ASSIGN(const auto file, read_settings(config_file));
  const auto given = std::move(settings);
  settings.clear();
  for (const auto& setting : file) {
    if (option_named(setting.key) == nullptr)
      return fail(TC_ERR_INVALID, "{}, line {}: there is no option '{}' (`ifunc options` lists them)", config_file,
                  setting.line, setting.key);
    set(setting.key, setting.value);
  }
  for (const auto& [name, value] : given) set(name, value);
  config_file.clear();
  return {};
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
  add("--drain", std::to_string(drain_ms));
  if (stats) list.push_back("--stats");
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
  if (const auto listen = get("listen"); !listen.empty() && listen != "none" && !is_path(listen)) {
    TC_CHECK(parse_address(listen));
  }
  for (const auto& [name, value] : settings)
    if (name == "trust-network" && value.ends_with("/0") && get("trust") != "any")
      return fail(
          TC_ERR_DENIED,
          "--trust-network {} is every network there is, so everybody who can reach this node could run any code "
          "with this process's rights: name your own network, or say `--trust any` if you mean that",
          value);
  if (get("bitcode") == "off" && get("objects") == "off")
    return fail(TC_ERR_INVALID, "--no-bitcode and --no-objects together leave no code that could run");
  if (const auto at = get("compile-at"); !at.empty()) TC_CHECK(parse_address(at));
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
