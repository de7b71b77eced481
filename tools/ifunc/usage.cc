// SPDX-License-Identifier: Apache-2.0
#include "ifunc/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "base/closest.h"

namespace tc::command {

namespace {

// The subcommand whose arguments were being read.
const CLI::App& innermost(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : innermost(*parsed.back());
}

std::string full_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name() : full_name(*app.get_parent()) + " " + app.get_name();
}

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* const option : app.get_options()) {
    for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    for (const auto& name : option->get_fnames()) names.push_back("--" + name.substr(0, name.find('{')));
  }
  return names;
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_name().empty()) names.push_back(command->get_name());
  return names;
}

// What is wrong with the arguments that nobody took.
std::string about_extras(const CLI::App& app, const std::vector<std::string>& extras) {
  const auto option = std::ranges::find_if(extras, [](const auto& word) { return word.starts_with("-"); });
  if (option != extras.end()) return there_is_no("option", option->substr(0, option->find('=')), options_of(app));
  const auto commands = commands_of(app);
  if (!commands.empty()) return there_is_no("command", extras.front(), commands);
  return fmt::format("'{}' is one argument too many", extras.front());
}

}  // namespace

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const auto& command = innermost(app);
  const auto name = full_name(command);
  const auto extras = app.remaining(true);
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  const bool has_extras =
      !extras.empty() && (kind == CLI::ExitCodes::ExtrasError || kind == CLI::ExitCodes::RequiredError);
  auto wrong = has_extras ? about_extras(command, extras) : std::string(error.what());
  while (wrong.ends_with('\n')) wrong.pop_back();
  return fmt::format("{}: {}{} `{} --help` lists {}", name, wrong, wrong.ends_with('?') ? "" : ";", name,
                     commands_of(command).empty() ? "its options" : "what there is");
}

int parse_and_run(CLI::App& app, int argc, const char* const* argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    std::fprintf(stderr, "%s\n", usage_error(app, error).c_str());
    return 2;
  } catch (const std::invalid_argument&) {  // of a switch
    std::fprintf(stderr, "%s: a switch was given a value that is neither true nor false; see --help\n",
                 app.get_name().c_str());
    return 2;
  }
  return exit_code;
}

}  // namespace tc::command
