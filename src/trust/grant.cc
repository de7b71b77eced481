// SPDX-License-Identifier: Apache-2.0
//
// The table `fields` has one row for each field of a line. fields_of() writes them.
#include "trust/grant.h"

#include <algorithm>
#include <charconv>

#include "trust/known_nodes.h"

namespace tc::trust {

namespace {

constexpr size_t most_names = 64;  // in one field

Result<std::vector<std::string>> split(std::string_view value) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= value.size();) {
    const auto comma = std::min(value.find(',', begin), value.size());
    if (comma == begin) return fail(TC_ERR_INVALID, "'{}' has an empty name between its commas", value);
    parts.emplace_back(value.substr(begin, comma - begin));
    begin = comma + 1;
  }
  if (parts.size() > most_names)
    return fail(TC_ERR_INVALID, "{} names when at most {} are allowed", parts.size(), most_names);
  return parts;
}

Status read_names(Names& names, std::string_view value) {
  if (value == "none") {
    names = Names::of({});
    return {};
  }
  TC_ASSIGN(auto patterns, split(value));
  for (const auto& pattern : patterns)
    if (pattern.find('*') < pattern.size() - 1)
      return fail(TC_ERR_INVALID, "'{}' has a '*' that is not its last character", pattern);
  names = Names::of(std::move(patterns));
  return {};
}

std::string names_text(const Names& names) {
  if (names.is_all()) return "*";
  return names.patterns().empty() ? "none" : fmt::format("{}", fmt::join(names.patterns(), ","));
}

Result<uint64_t> read_number(std::string_view value, uint64_t most) {
  uint64_t number = 0;
  const auto* const end = value.data() + value.size();
  const auto [at, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc{} || at != end || number == 0 || number > most)
    return fail(TC_ERR_INVALID, "'{}' is no whole number from 1 to {}", value, most);
  return number;
}

// Bytes: a number that may end in K, M or G.
Result<uint64_t> read_bytes(std::string_view value) {
  const auto letter = std::string_view("KMG").find(value.empty() ? ' ' : value.back());
  const unsigned shift = letter == std::string_view::npos ? 0 : 10 * (static_cast<unsigned>(letter) + 1);
  TC_ASSIGN(const auto number, read_number(value.substr(0, value.size() - (shift != 0 ? 1 : 0)), UINT64_MAX >> shift));
  return number << shift;
}

Status read_run(Grant& grant, std::string_view value) {
  if (value == "signed")
    grant.run = Run::signed_code;
  else if (value == "any")
    grant.run = Run::any;
  else if (value == "none")
    grant.run = Run::none;
  else
    return fail(TC_ERR_INVALID, "'{}' is none of signed, any, none", value);
  return {};
}

Status read_where(Grant& grant, std::string_view value) {
  if (value == "process")
    grant.where = Where::process;
  else if (value == "cell")
    grant.where = Where::cell;
  else
    return fail(TC_ERR_INVALID, "'{}' is neither process nor cell", value);
  return {};
}

Status read_hosts(Grant& grant, std::string_view value) {
  TC_ASSIGN(const auto ranges, split(value));
  std::vector<AddressRange> hosts;
  for (const auto& text : ranges) {
    TC_ASSIGN(auto range, AddressRange::parse(text));
    hosts.push_back(std::move(range));
  }
  grant.hosts = std::move(hosts);
  return {};
}

Status read_at(Grant& grant, std::string_view value) {
  TC_ASSIGN(const auto addresses, split(value));
  std::vector<std::string> at;
  for (const auto& address : addresses) {
    auto text = canonical_address(address);
    const auto colon = std::min(text.rfind(':'), text.size());
    const auto port = std::string_view(text).substr(colon);
    // What is spelled strangely, like "north..:1", would be another address each time that the line is written and read.
    if (colon == 0 || port.size() < 2 || port.find_first_not_of("0123456789", 1) != std::string_view::npos ||
        canonical_address(text) != text)
      return fail(TC_ERR_INVALID, "'{}' is no HOST:PORT", address);
    at.push_back(std::move(text));
  }
  grant.at = std::move(at);
  return {};
}

Status read_code(Grant& grant, std::string_view value) {
  TC_ASSIGN(grant.code_budget, read_bytes(value));
  return {};
}

Status read_rate(Grant& grant, std::string_view value) {
  TC_ASSIGN(const auto rate, read_number(value, UINT32_MAX));
  grant.rate = static_cast<uint32_t>(rate);
  return {};
}

struct Field {
  std::string_view name;
  Status (*read)(Grant& grant, std::string_view value);
};

constexpr Field fields[] = {
    {"run", read_run},
    {"in", read_where},
    {"read", [](Grant& grant, std::string_view value) { return read_names(grant.read, value); }},
    {"write", [](Grant& grant, std::string_view value) { return read_names(grant.write, value); }},
    {"libs", [](Grant& grant, std::string_view value) { return read_names(grant.libraries, value); }},
    {"exports", [](Grant& grant, std::string_view value) { return read_names(grant.exports, value); }},
    {"hosts", read_hosts},
    {"at", read_at},
    {"code", read_code},
    {"rate", read_rate},
    {"until",
     [](Grant& grant, std::string_view value) -> Status {
       TC_ASSIGN(grant.until, parse_time(value));
       return {};
     }},
    {"revoked",
     [](Grant& grant, std::string_view value) -> Status {
       TC_ASSIGN(grant.revoked, parse_time(value));
       return {};
     }},
};

void add(std::string& text, std::string_view name, std::string_view value) {
  text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
}

void add_names(std::string& text, std::string_view name, const Names& names) {
  if (!names.is_all()) add(text, name, names_text(names));
}

}  // namespace

bool is_key_name(std::string_view name) noexcept {
  constexpr std::string_view others = "-_.";
  return !name.empty() && name.size() <= 64 && name.front() != '.' && std::ranges::all_of(name, [&](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
           others.find(letter) != std::string_view::npos;
  });
}

namespace {

Status set_field(Grant& grant, std::string_view name, std::string_view value, unsigned& seen) {
  const auto* const field = std::ranges::find(fields, name, &Field::name);
  if (field == std::end(fields)) {
    std::string names;
    for (const auto& each : fields) names += fmt::format("{}{}", names.empty() ? "" : ", ", each.name);
    return fail(TC_ERR_INVALID, "there is no field '{}': they are {}", name, names);
  }
  const unsigned bit = 1u << (field - std::begin(fields));
  if ((seen & bit) != 0) return fail(TC_ERR_INVALID, "field {} stands there twice", name);
  seen |= bit;
  if (auto read = field->read(grant, value); !read)
    return context(fmt::format("field {}", name), std::move(read).error());
  return {};
}

constexpr unsigned bit_of(std::string_view name) {
  unsigned bit = 1;
  for (const auto& field : fields) {
    if (field.name == name) return bit;
    bit <<= 1;
  }
  return 0;
}

// Takes the next word off `rest`. Empty: no word is left.
std::string_view take_word(std::string_view& rest) noexcept {
  constexpr std::string_view blanks = " \t";
  rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
  const auto word = rest.substr(0, rest.find_first_of(blanks));
  rest.remove_prefix(word.size());
  return word;
}

}  // namespace

Result<Grant> parse_grant(std::string_view line) {
  Grant grant;
  auto rest = line;
  const auto name = take_word(rest);
  if (!is_key_name(name))
    return fail(TC_ERR_INVALID,
                "'{}' is no name: one is 1 to 64 letters, digits, '-', '_' and '.', and does not begin with '.'",
                name.substr(0, 80));
  grant.name = name;
  const auto key = take_word(rest);
  if (key.empty()) return fail(TC_ERR_INVALID, "'{}' has no key: a line is NAME KEY FIELD=VALUE ...", name);
  TC_ASSIGN(grant.key, PublicKey::parse(key));
  unsigned seen = 0;
  for (auto word = take_word(rest); !word.empty(); word = take_word(rest)) {
    const auto equals = word.find('=');
    if (equals == std::string_view::npos)
      return fail(TC_ERR_INVALID, "'{}' is no field: one is NAME=VALUE, without blanks", word.substr(0, 80));
    TC_CHECK(set_field(grant, word.substr(0, equals), word.substr(equals + 1), seen));
  }
  // A line that names what may be read allows no writing unless it says so.
  if ((seen & bit_of("read")) != 0 && (seen & bit_of("write")) == 0) grant.write = Names::of({});
  return grant;
}

std::string to_line(const Grant& grant) {
  const auto fields = fields_of(grant);
  return fmt::format("{} {}{}{}", grant.name, grant.key.text(), fields.empty() ? "" : " ", fields);
}

bool is_same_for_code(const Grant& one, const Grant& other) noexcept {
  return one.key == other.key && one.run == other.run && one.where == other.where && one.read == other.read &&
         one.write == other.write && one.libraries == other.libraries && one.exports == other.exports;
}

std::string fields_of(const Grant& grant) {
  std::string text;
  if (grant.run != Run::signed_code) add(text, "run", grant.run == Run::any ? "any" : "none");
  if (grant.where != Where::process) add(text, "in", "cell");
  add_names(text, "read", grant.read);
  if (!grant.read.is_all() || !grant.write.is_all()) {
    const bool as_read_alone = !grant.read.is_all() && !grant.write.is_all() && grant.write.patterns().empty();
    if (!as_read_alone) add(text, "write", names_text(grant.write));
  }
  add_names(text, "libs", grant.libraries);
  add_names(text, "exports", grant.exports);
  std::string hosts;
  for (const auto& range : grant.hosts) hosts += (hosts.empty() ? "" : ",") + range.text();
  if (!hosts.empty()) add(text, "hosts", hosts);
  if (!grant.at.empty()) add(text, "at", fmt::format("{}", fmt::join(grant.at, ",")));
  if (grant.code_budget) add(text, "code", fmt::format("{}", *grant.code_budget));
  if (grant.rate) add(text, "rate", fmt::format("{}", *grant.rate));
  if (grant.until) add(text, "until", to_text(*grant.until));
  if (grant.revoked) add(text, "revoked", to_text(*grant.revoked));
  return text;
}

Result<Grant> with_fields(const Grant& grant, std::string_view fields) {
  const auto name_of = [](std::string_view field) { return field.substr(0, field.find('=')); };
  const auto is_given = [&](std::string_view name) {
    auto rest = fields;
    for (auto word = take_word(rest); !word.empty(); word = take_word(rest))
      if (name_of(word) == name) return true;
    return false;
  };
  auto line = fmt::format("{} {}", grant.name, grant.key.text());
  const auto before = fields_of(grant);
  std::string_view rest = before;
  for (auto word = take_word(rest); !word.empty(); word = take_word(rest))
    if (!is_given(name_of(word))) line += fmt::format(" {}", word);
  return parse_grant(fmt::format("{} {}", line, fields));
}

// ---- Names

namespace {

bool matches(std::string_view pattern, std::string_view name) noexcept {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

Names Names::of(std::vector<std::string> patterns) {
  Names names;
  if (std::ranges::find(patterns, "*") == patterns.end()) names.patterns_ = std::move(patterns);
  return names;
}

bool Names::contains(std::string_view name) const noexcept {
  return is_all() || std::ranges::any_of(*patterns_, [&](const auto& pattern) { return matches(pattern, name); });
}

const std::vector<std::string>& Names::patterns() const noexcept { return *patterns_; }

// ---- Times

namespace {

// The number that stands at `at`. -1: not all of these characters are digits.
int number(std::string_view text, size_t at, size_t digits) noexcept {
  int value = -1;
  const auto part = text.substr(at, digits);
  for (const char letter : part)
    if (letter < '0' || letter > '9') return -1;
  std::from_chars(part.data(), part.data() + part.size(), value);
  return value;
}

// True: the punctuation is that of "2027-01-31" or "2027-01-31T12:00:00Z".
bool has_shape(std::string_view text) noexcept {
  if (text.size() != 10 && text.size() != 20) return false;
  if (text[4] != '-' || text[7] != '-') return false;
  return text.size() == 10 || (text[10] == 'T' && text[13] == ':' && text[16] == ':' && text[19] == 'Z');
}

}  // namespace

std::string to_text(Time time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const auto second = (time - day).count();
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), second / 3600,
                     second / 60 % 60, second % 60);
}

Result<Time> parse_time(std::string_view text) {
  using namespace std::chrono;
  if (has_shape(text)) {
    const int year_number = number(text, 0, 4), month_number = number(text, 5, 2), day_number = number(text, 8, 2);
    const bool has_time = text.size() == 20;
    const int hour = has_time ? number(text, 11, 2) : 0;
    const int minute = has_time ? number(text, 14, 2) : 0;
    const int second = has_time ? number(text, 17, 2) : 0;
    const bool all_digits = year_number >= 0 && month_number >= 0 && day_number >= 0;
    const bool a_time = hour >= 0 && hour < 24 && minute >= 0 && minute < 60 && second >= 0 && second < 60;
    if (all_digits && a_time) {
      const year_month_day date{year(year_number), month(static_cast<unsigned>(month_number)),
                                day(static_cast<unsigned>(day_number))};
      if (date.ok()) return Time(sys_days(date)) + hours(hour) + minutes(minute) + seconds(second);
    }
  }
  return fail(TC_ERR_INVALID, "'{}' is no time: one is 2027-01-31 or 2027-01-31T12:00:00Z", text.substr(0, 40));
}

}  // namespace tc::trust
