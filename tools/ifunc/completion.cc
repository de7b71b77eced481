// SPDX-License-Identifier: Apache-2.0
#include "ifunc/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/closest.h"
#include "base/file.h"

namespace tc::command {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  std::vector<const CLI::App*> commands;
  for (const auto* const command : app.get_subcommands([](const CLI::App*) { return true; }))
    if (!command->get_name().empty()) commands.push_back(command);
  return commands;
}

std::vector<std::string> names_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const auto* const command : commands_of(app)) names.push_back(command->get_name());
  return names;
}

// Those of its groups, which are commands without a name, as well.
std::vector<const CLI::Option*> options_of(const CLI::App& app) {
  std::vector<const CLI::Option*> options;
  for (const auto* const option : app.get_options()) options.push_back(option);
  for (const auto* const group : app.get_subcommands([](const CLI::App*) { return true; }))
    if (group->get_name().empty())
      for (const auto* const option : group->get_options()) options.push_back(option);
  return options;
}

// "--listen", "-l"; "--tune" and "--no-tune".
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const auto& name : option.get_snames()) names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

// The words among "ADDRESS:PORT|unix:PATH|none" that are written as they are.
std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> choices;
  const auto type = option.get_type_name();
  if (type.find('|') == type.npos) return choices;
  for (const auto& word : CLI::detail::split(type, '|'))
    if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") == word.npos) choices.push_back(word);
  return choices;
}

bool takes_file(const CLI::Option& option) {
  const auto type = option.get_type_name();
  return std::ranges::any_of(std::initializer_list<std::string_view>{"FILE", "PATH", "DIRECTORY"},
                             [&](auto word) { return type.find(word) != type.npos; });
}

std::string first_sentence(std::string_view text) {
  const auto end = std::min(text.find(". "), text.find('\n'));
  return std::string(text.substr(0, end));
}

std::string joined(const std::vector<std::string>& words, std::string_view between = " ") {
  return fmt::format("{}", fmt::join(words, between));
}

// In single quotes, as bash and zsh read them; fish knows \' there.
std::string in_quotes(std::string_view text, std::string_view quote = "'\\''") {
  std::string out = "'";
  for (const char letter : text)
    if (letter == '\'')
      out += quote;
    else
      out += letter;
  return out + "'";
}

// Calls `visit` with each command and its words behind "ifunc", the outermost first.
void for_each_command(const CLI::App& app, const std::string& path,
                      const std::function<void(const CLI::App&, const std::string&)>& visit) {
  visit(app, path);
  for (const auto* const command : commands_of(app))
    for_each_command(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), visit);
}

// ---- bash and zsh

// Cases of "COMMAND:WORD": a word that begins a command, and an option whose value is to be completed.
struct ShellCases {
  std::vector<std::string> commands;
  std::string values;               // of options with choices
  std::vector<std::string> others;  // options with other values
};

ShellCases cases_of(const CLI::App& app, std::string_view give_choices) {
  ShellCases cases;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    for (const auto* const inner : commands_of(command))
      cases.commands.push_back(in_quotes(path + ":" + inner->get_name()));
    for (const auto* const option : options_of(command)) {
      if (!takes_value(*option)) continue;
      std::vector<std::string> patterns;
      for (const auto& name : names_of(*option)) patterns.push_back(in_quotes(path + ":" + name));
      if (patterns.empty()) continue;
      if (const auto choices = choices_of(*option); !choices.empty())
        cases.values += fmt::format("    {}) {} ;;\n", joined(patterns, " | "),
                                    fmt::format(fmt::runtime(give_choices), joined(choices)));
      else
        cases.others.insert(cases.others.end(), patterns.begin(), patterns.end());
    }
  });
  return cases;
}

std::string for_bash(const CLI::App& app) {
  const auto cases = cases_of(app, "COMPREPLY=($(compgen -W '{}' -- \"$word\")); return");
  std::string words;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    std::vector<std::string> all;
    for (const auto* const inner : commands_of(command)) all.push_back(inner->get_name());
    for (const auto* const option : options_of(command))
      for (auto& name : names_of(*option)) all.push_back(std::move(name));
    words += fmt::format("    {}) words='{}' ;;\n", in_quotes(path), joined(all));
  });
  return fmt::format(
      R"(# Completion of `ifunc` in bash: the output of `ifunc completion bash`.
_ifunc() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= words= i
  # bash takes --log=warn for three words.
  [[ $word == "=" ]] && word=
  [[ $previous == "=" ]] && previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${{COMP_WORDS[i]}} == -- ]] && return  # a command of its own stands behind it
    case "$command:${{COMP_WORDS[i]}}" in
    {}) command+="${{command:+ }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command:$previous" in
{}    {}) return ;;
  esac
  case "$command" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
# Where it finds nothing, names of files.
complete -o bashdefault -o default -F _ifunc ifunc
)",
      joined(cases.commands, " | "), cases.values, joined(cases.others, " | "), words);
}

std::string for_zsh(const CLI::App& app) {
  const auto cases = cases_of(app, "compadd -- {}; return");
  std::string words;
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    words += fmt::format("    {}) found=(\n", in_quotes(path));
    for (const auto* const inner : commands_of(command))
      words += fmt::format(
          "      {}\n", in_quotes(fmt::format("{}:{}", inner->get_name(), first_sentence(inner->get_description()))));
    for (const auto* const option : options_of(command))
      for (const auto& name : names_of(*option))
        words +=
            fmt::format("      {}\n", in_quotes(fmt::format("{}:{}", name, first_sentence(option->get_description()))));
    words += "    ) ;;\n";
  });
  return fmt::format(
      R"(#compdef ifunc
# Completion of `ifunc` in zsh: the output of `ifunc completion zsh`.
_ifunc() {{
  local command= previous=$words[CURRENT-1] word
  local -a found
  for word in "${{(@)words[2,CURRENT-1]}}"; do
    if [[ $word == -- ]]; then  # a command of its own stands behind it
      _files
      return
    fi
    case "$command:$word" in
    {}) command+="${{command:+ }}$word" ;;
    esac
  done
  case "$command:$previous" in
{}    {}) _files; return ;;
  esac
  case "$command" in
{}  esac
  _describe -o ifunc found
  [[ $PREFIX == -* || -z $command ]] || _files
}}
_ifunc "$@"
)",
      joined(cases.commands, " | "), cases.values, joined(cases.others, " | "), words);
}

// ---- fish

std::string for_fish(const CLI::App& app) {
  std::string text = "# Completion of `ifunc` in fish: the output of `ifunc completion fish`.\ncomplete -c ifunc -f\n";
  for_each_command(app, "", [&](const CLI::App& command, const std::string& path) {
    std::vector<std::string> conditions;
    for (const auto& word : CLI::detail::split(path, ' '))
      if (!word.empty()) conditions.push_back("__fish_seen_subcommand_from " + word);
    std::vector<std::string> inner_names;
    for (const auto* const inner : commands_of(command)) inner_names.push_back(inner->get_name());
    if (!inner_names.empty()) conditions.push_back("not __fish_seen_subcommand_from " + joined(inner_names));
    const auto condition = in_quotes(joined(conditions, "; and "), "\\'");
    for (const auto* const inner : commands_of(command))
      text += fmt::format("complete -c ifunc -n {} -a {} -d {}\n", condition, inner->get_name(),
                          in_quotes(first_sentence(inner->get_description()), "\\'"));
    bool has_files = false;
    for (const auto* const option : options_of(command)) {
      has_files = has_files || (names_of(*option).empty());
      for (const auto& name : names_of(*option)) {
        std::string value;
        if (const auto choices = choices_of(*option); takes_value(*option) && !choices.empty())
          value = fmt::format(" -x -a {}", in_quotes(joined(choices)));
        else if (takes_value(*option))
          value = takes_file(*option) ? " -r -F" : " -x";
        text += fmt::format("complete -c ifunc -n {} {} {}{} -d {}\n", condition, name.starts_with("--") ? "-l" : "-s",
                            name.substr(name.starts_with("--") ? 2 : 1), value,
                            in_quotes(first_sentence(option->get_description()), "\\'"));
      }
    }
    if (has_files || path == "build") text += fmt::format("complete -c ifunc -n {} -F\n", condition);
  });
  return text;
}

// ---- Manual pages

// As roff wants text: a line that begins with . or ' would be a command.
std::string roff(std::string_view text) {
  std::string out;
  bool is_first = true;
  for (const char letter : text) {
    if (is_first && (letter == '.' || letter == '\'')) out += "\\&";
    if (letter == '\\')
      out += "\\e";
    else if (letter == '-')
      out += "\\-";
    else if (letter == '`' || letter == '\'')
      out += "\\(aq";
    else
      out += letter;
    is_first = letter == '\n';
  }
  return out;
}

std::string options_in_roff(const CLI::App& app) {
  std::string text, group;
  for (const auto* const option : options_of(app)) {
    if (option->get_group() != group) {
      group = option->get_group();
      if (group != "Options") text += fmt::format(".SS {}\n", roff(group));
    }
    const auto names = names_of(*option);
    const auto value = takes_value(*option) ? option->get_type_name() : "";
    text += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(names.empty() ? option->get_name(true) : joined(names, ", ")),
                        names.empty() || value.empty() ? "" : fmt::format(" \\fI{}\\fR", roff(value)),
                        option->get_description().empty() ? "\\&" : roff(option->get_description()));
  }
  return text;
}

std::string page_name(const CLI::App& command) {
  return command.get_parent() == nullptr ? "ifunc" : "ifunc-" + command.get_name();
}

// The page of `ifunc`, or of one of its commands with the commands of that.
std::string manual_page(const CLI::App& app) {
  const bool is_root = app.get_parent() == nullptr;
  const auto name = page_name(app), called = is_root ? std::string("ifunc") : "ifunc " + app.get_name();
  auto text = fmt::format(".TH {} 1 \"\" \"Three\\-Chains\"\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n", roff(name),
                          roff(name), roff(first_sentence(app.get_description())), roff(called));
  text += fmt::format("[\\fIOPTIONS\\fR]{}\n", commands_of(app).empty() ? "" : " \\fICOMMAND\\fR");
  text += fmt::format(".SH DESCRIPTION\n{}\n", roff(app.get_description()));
  if (!app.get_footer().empty()) text += fmt::format(".PP\n.nf\n{}\n.fi\n", roff(app.get_footer()));
  text += ".SH OPTIONS\n" + options_in_roff(app);
  if (!commands_of(app).empty()) text += ".SH COMMANDS\n";
  std::vector<std::string> others;
  for (const auto* const command : commands_of(app)) {
    if (is_root) {
      text += fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(command->get_name()), roff(command->get_description()));
      others.push_back(fmt::format(".BR {} (1)", roff(page_name(*command))));
    } else {
      text += fmt::format(".SS {} {}\n{}\n{}", roff(called), roff(command->get_name()),
                          roff(command->get_description()), options_in_roff(*command));
    }
  }
  text +=
      ".SH EXIT STATUS\n0: success. 1: failure, with a sentence on standard error. 2: wrong usage.\n"
      "78: a configuration file that is wrong.\n.SH SEE ALSO\n";
  return text + (is_root ? joined(others, ",\n") : ".BR ifunc (1)") + "\n";
}

Status write_manual(const CLI::App& app, const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return fail(TC_ERR_IO, "cannot create {}: {}", directory, error.message());
  auto pages = commands_of(app);
  pages.push_back(&app);
  for (const auto* const page : pages)
    TC_CHECK(write_file_atomically(std::filesystem::path(directory) / (page_name(*page) + ".1"),
                                   as_bytes(manual_page(*page))));
  return {};
}

}  // namespace

void add_completion(CLI::App& app, int& exit_code) {
  auto* const completion = app.add_subcommand("completion", "Print what a shell needs to complete these commands");
  completion->footer(
      "  source <(ifunc completion bash)        # in this shell; installed copies bring the files along");
  const auto shell = std::make_shared<std::string>();
  completion->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->callback([&app, shell] {
    fmt::print("{}", *shell == "bash" ? for_bash(app) : *shell == "zsh" ? for_zsh(app) : for_fish(app));
  });

  auto* const manual = app.add_subcommand("man", "Print a manual page, for `man -l -`");
  const auto command = std::make_shared<std::string>(), directory = std::make_shared<std::string>();
  manual->add_option("COMMAND", *command, "Of this command; of `ifunc` itself without it");
  manual->add_option("--all", *directory, "Write all pages into this directory")->type_name("DIRECTORY");
  manual->callback([&app, &exit_code, command, directory] {
    Status status;
    const CLI::App* page = command->empty() ? &app : nullptr;
    for (const auto* const one : commands_of(app))
      if (one->get_name() == *command) page = one;
    if (!directory->empty())
      status = write_manual(app, *directory);
    else if (page == nullptr)
      status = fail(TC_ERR_INVALID, "{}", there_is_no("command", *command, names_of(app)));
    else
      fmt::print("{}", manual_page(*page));
    if (status) return;
    fmt::print(stderr, "ifunc man: {}\n", status.error().message);
    exit_code = status.error().code == TC_ERR_INVALID ? 2 : 1;
  });
}

}  // namespace tc::command
