// SPDX-License-Identifier: Apache-2.0
#include "base/settings.h"

#ifdef TC_HAVE_TOML

#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "base/closest.h"
#include "base/file.h"

namespace tc {

namespace {

constexpr size_t most_bytes = 1u << 20;

struct Value {
  enum class Kind : uint8_t { text, number, truth, other };
  unsigned line;
  Kind kind;
  std::string text;  // as a command line would have it; what it is, when it is something else
};

struct Setting {
  unsigned line;
  std::string name;
  bool is_list = false;
  std::vector<Value> values;
};

struct Fault {
  unsigned line;
  unsigned column;  // 0: the whole line
  std::string words;
};

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r\n";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// ---- From TOML to settings

Value value_of(const toml::node& node, unsigned line_before) {
  const auto line = line_before + node.source().begin.line;
  switch (node.type()) {
    case toml::node_type::string: return {line, Value::Kind::text, node.as_string()->get()};
    case toml::node_type::integer: return {line, Value::Kind::number, std::to_string(node.as_integer()->get())};
    case toml::node_type::boolean: return {line, Value::Kind::truth, node.as_boolean()->get() ? "on" : "off"};
    case toml::node_type::floating_point: return {line, Value::Kind::other, "a number with a fraction"};
    case toml::node_type::table: return {line, Value::Kind::other, "a table"};
    case toml::node_type::array: return {line, Value::Kind::other, "a list"};
    default: return {line, Value::Kind::other, "a date or time"};
  }
}

void add_settings(const toml::table& table, unsigned line_before, std::vector<Setting>& settings) {
  for (const auto& [key, node] : table) {
    Setting setting{.line = line_before + key.source().begin.line, .name = std::string(key.str()), .values = {}};
    if (const auto* const list = node.as_array(); list != nullptr && !list->is_array_of_tables()) {
      setting.is_list = true;
      for (const auto& element : *list) setting.values.push_back(value_of(element, line_before));
    } else {
      setting.values.push_back(value_of(node, line_before));
    }
    settings.push_back(std::move(setting));
  }
}

// A setting as it stands in the file. Used for files that are not TOML, where the parser stops at the first error and
// readers want to hear of all.
struct Statement {
  unsigned line;
  std::string_view text;

  // `name = value` in the first line; empty without it.
  std::string_view name() const {
    const auto first = text.substr(0, text.find('\n'));
    const auto equals = first.find('=');
    return equals == first.npos ? "" : trimmed(first.substr(0, equals));
  }
  std::string_view value() const { return trimmed(text.substr(std::min(text.size(), text.find('=') + 1))); }

  // Does it go on in the next line? What only looks so ends where the next `name =` begins.
  bool is_open() const {
    const auto rest = value();
    for (const std::string_view quotes : {R"(""")", "'''"})
      if (rest.starts_with(quotes)) return rest.find(quotes, quotes.size()) == rest.npos;
    return rest.starts_with('[') && !rest.ends_with(']');
  }
};

bool begins_setting(std::string_view line) {
  const auto end = line.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-");
  return end != line.npos && end > 0 && trimmed(line.substr(end)).starts_with('=');
}

std::vector<Statement> statements_of(std::string_view text) {
  std::vector<Statement> statements;
  bool open = false;
  unsigned number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const auto end = std::min(text.find('\n', begin), text.size());
    const auto line = trimmed(text.substr(begin, end - begin));
    if (open && !begins_setting(line)) {
      auto& last = statements.back();
      last.text = {last.text.data(), text.data() + end};
    } else if (!line.empty() && !line.starts_with('#')) {
      statements.push_back({number, text.substr(begin, end - begin)});
    }
    open = !statements.empty() && (open || statements.back().line == number) && statements.back().is_open();
    begin = end + 1;
  }
  return statements;
}

// ---- What is known of a setting

const KnownSetting* known_as(std::string_view name, std::span<const KnownSetting> known) {
  const auto found = std::ranges::find(known, name, &KnownSetting::name);
  return found == known.end() ? nullptr : &*found;
}

std::string unknown(std::string_view name, std::span<const KnownSetting> known) {
  std::vector<std::string> names;
  for (const auto& one : known) names.emplace_back(one.name);
  return there_is_no("option", name, names);
}

bool is_truth(const KnownSetting& known) { return known.value == "on|off"; }
bool is_number(const KnownSetting& known) { return known.value == "NUMBER" || known.value == "MILLISECONDS"; }

// What stands between the values of a list that is one value on a command line.
std::string_view separator_of(const KnownSetting& known) {
  return known.value.ends_with(",...") ? "," : known.value.ends_with(":...") ? ":" : "";
}

bool has_right_type(const KnownSetting& known, const Value& value) {
  if (is_truth(known)) return value.kind == Value::Kind::truth;
  if (is_number(known)) return value.kind == Value::Kind::number;
  return value.kind == Value::Kind::text || (known.value == "BYTES" && value.kind == Value::Kind::number);
}

std::string what_it_takes(const KnownSetting& known) {
  if (is_truth(known)) return "true or false";
  if (is_number(known)) return "a whole number, without quotes";
  if (known.value == "BYTES") return "a number of bytes, or a string like \"64M\"";
  return "a string, in quotes";
}

std::string shown(const Value& value) {
  switch (value.kind) {
    case Value::Kind::text: return fmt::format("\"{}\"", value.text);
    case Value::Kind::truth: return value.text == "on" ? "true" : "false";
    default: return value.text;
  }
}

// ---- Faults

// What the parser did not understand. Its own words say little of a value without quotes, which is the usual mistake.
Fault syntax_fault(const Statement& statement, const toml::parse_error& error, std::span<const KnownSetting> known) {
  const auto name = statement.name();
  if (name.empty())
    return {statement.line, 0, fmt::format("'{}' when a line is `name = value`", trimmed(statement.text))};
  const auto value = trimmed(statement.value().substr(0, statement.value().find('#')));
  const bool is_bare = !value.empty() && value.find_first_of("\"'[{\n") == value.npos;
  if (is_bare && begins_setting(trimmed(statement.text))) {
    const auto* const one = known_as(name, known);
    if (one == nullptr) return {statement.line, 0, unknown(name, known)};
    if (is_truth(*one) || is_number(*one))
      return {statement.line, 0, fmt::format("{} is {} when it is {}", name, value, what_it_takes(*one))};
    return {statement.line, 0, fmt::format("strings stand in quotes: {} = \"{}\"", name, value)};
  }
  const auto place = error.source().begin;
  std::string words(error.description());
  if (words.starts_with("Error")) words.front() = 'e';
  return {statement.line + place.line - 1, place.column, std::move(words)};
}

class Judge {
 public:
  Judge(std::span<const KnownSetting> known, const TakeSetting& take) : known_(known), take_(take) {}

  void judge(const Setting& setting) {
    if (const auto [first, is_new] = lines_.emplace(setting.name, setting.line); !is_new)
      return add(setting.line, fmt::format("{} was set in line {} already", setting.name, first->second));
    const auto* const known = known_as(setting.name, known_);
    if (known == nullptr) return add(setting.line, unknown(setting.name, known_));
    const auto separator = separator_of(*known);
    if (setting.is_list && !known->repeatable && separator.empty())
      return add(setting.line, fmt::format("{} is a list when it is {}", setting.name, what_it_takes(*known)));
    std::optional<std::string> joined;
    for (const auto& value : setting.values) {
      if (!has_right_type(*known, value))
        add(value.line, fmt::format("{} is {} when it is {}", setting.name, shown(value), what_it_takes(*known)));
      else if (setting.is_list && !separator.empty())
        joined = joined ? fmt::format("{}{}{}", *joined, separator, value.text) : value.text;
      else
        take(value.line, setting.name, value.text);
    }
    if (joined) take(setting.line, setting.name, *joined);
  }
  void add(Fault fault) { faults_.push_back(std::move(fault)); }
  bool has_faults() const { return !faults_.empty(); }

  // One sentence a line.
  std::string words(const std::string& path) {
    std::ranges::sort(faults_, {}, [](const Fault& fault) { return std::tie(fault.line, fault.words); });
    std::string text;
    for (const auto& fault : faults_)
      text += fmt::format("{}{}, line {}{}: {}", text.empty() ? "" : "\n", path, fault.line,
                          fault.column == 0 ? "" : fmt::format(", column {}", fault.column), fault.words);
    return text;
  }

 private:
  void add(unsigned line, std::string words) { faults_.push_back({line, 0, std::move(words)}); }
  void take(unsigned line, std::string_view name, std::string_view value) {
    if (auto taken = take_(name, value); !taken) add(line, std::move(taken.error().message));
  }

  std::span<const KnownSetting> known_;
  const TakeSetting& take_;
  std::map<std::string, unsigned> lines_;  // where each name was set
  std::vector<Fault> faults_;
};

}  // namespace

Result<size_t> read_settings(const std::string& path, std::span<const KnownSetting> known, const TakeSetting& take) {
  TC_ASSIGN(const auto bytes, read_file(path, most_bytes));
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<Setting> settings;
  Judge judge(known, take);
  const auto whole = toml::parse(text);
  if (whole) {
    add_settings(whole.table(), 0, settings);
  } else {
    for (const auto& statement : statements_of(text)) {
      const auto parsed = toml::parse(statement.text);
      if (parsed)
        add_settings(parsed.table(), statement.line - 1, settings);
      else
        judge.add(syntax_fault(statement, parsed.error(), known));
    }
  }
  std::ranges::sort(settings, {}, &Setting::line);  // the parser has them by name
  for (const auto& setting : settings) judge.judge(setting);
  if (!whole && !judge.has_faults()) {
    const auto place = whole.error().source().begin;
    judge.add({place.line, place.column, std::string(whole.error().description())});
  }
  if (judge.has_faults()) return fail(TC_ERR_INVALID, "{}", judge.words(path));
  return settings.size();
}

}  // namespace tc

#else

namespace tc {

Result<size_t> read_settings(const std::string& path, std::span<const KnownSetting>, const TakeSetting&) {
  return fail(TC_ERR_UNSUPPORTED,
              "{}: this build of Three-Chains reads no configuration files; give its options one by one", path);
}

}  // namespace tc

#endif
