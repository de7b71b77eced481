// SPDX-License-Identifier: Apache-2.0
#include "trust/keyring.h"

#include <algorithm>
#include <map>
#include <optional>

#include "trust/private_file.h"

namespace tc::trust {

namespace {

// Calls `use` with each line and its number, from 1.
template <class Use>
Status each_line(std::string_view text, const Use& use) {
  for (unsigned number = 1; !text.empty(); ++number) {
    const auto end = text.find('\n');
    const auto line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    TC_CHECK(use(line, number));
  }
  return {};
}

bool is_comment(std::string_view line) noexcept {
  const auto begin = line.find_first_not_of(" \t");
  return begin == std::string_view::npos || line[begin] == '#';
}

// Names and values of a keyring reach logs and terminals, where control characters could act.
bool is_printable(std::string_view line) noexcept {
  return std::ranges::all_of(line, [](char letter) { return letter == '\t' || (letter >= ' ' && letter <= '~'); });
}

// A line that was cut behind one of its fields is a line, too, and allows more.
Status check_end(std::string_view text, std::string_view where) {
  if (text.empty() || text.back() == '\n') return {};
  return fail(TC_ERR_INVALID,
              "{}, line {}: the last line does not end with a line feed, so a part of the file may be missing; if none "
              "is, say `echo >> {}`",
              where, std::ranges::count(text, '\n') + 1, where);
}

Result<Grant> read_line(std::string_view line) {
  if (line.size() > Keyring::max_line_bytes)
    return fail(TC_ERR_TOO_LARGE, "it is {} bytes long when at most {} are allowed", line.size(),
                Keyring::max_line_bytes);
  if (!is_printable(line)) return fail(TC_ERR_INVALID, "it holds a character that is not printable ASCII");
  return parse_grant(line);
}

// Replaces the line with that number, from 1. Without `line`, removes it.
std::string with_line(std::string_view text, unsigned number, std::optional<std::string_view> line) {
  std::string out;
  (void)each_line(text, [&](std::string_view old, unsigned at) -> Status {
    if (at != number || line) out.append(at == number ? *line : old).push_back('\n');
    return {};
  });
  return out;
}

// Lists the first names, and how many more there are.
std::string some_of(std::span<const std::string> names) {
  constexpr size_t most_names = 20;
  const auto shown = names.first(std::min(names.size(), most_names));
  const auto left_out = names.size() - shown.size();
  return fmt::format("{}{}", fmt::join(shown, ", "), left_out == 0 ? "" : fmt::format(" and {} more", left_out));
}

Result<const Grant*> find_line(const Keyring& keyring, std::string_view name_or_key) {
  const auto key = PublicKey::parse(name_or_key);
  const auto* const grant = key ? keyring.find(*key) : keyring.find(name_or_key);
  if (grant != nullptr) return grant;
  std::vector<std::string> names;
  for (const auto& each : keyring.grants()) names.push_back(each.name);
  return fail(TC_ERR_INVALID, "'{}' is no name and no key in {}, which {}", name_or_key.substr(0, 80), keyring.where(),
              names.empty() ? "is empty" : "has: " + some_of(names));
}

}  // namespace

Result<Keyring> Keyring::parse(std::string_view text, std::string_view where) {
  if (text.size() > max_file_bytes)
    return fail(TC_ERR_TOO_LARGE, "{} is {} bytes when at most {} are allowed", where, text.size(), max_file_bytes);
  Keyring keyring;
  keyring.where_ = where;
  std::map<std::string, unsigned, std::less<>> names;
  std::map<PublicKey, unsigned> keys;
  TC_CHECK(each_line(text, [&](std::string_view line, unsigned number) -> Status {
    if (line.size() <= max_line_bytes && is_comment(line)) return {};
    auto grant = read_line(line);
    if (!grant) return context(fmt::format("{}, line {}", where, number), std::move(grant).error());
    grant->line = number;
    if (const auto [at, is_new] = names.emplace(grant->name, number); !is_new)
      return fail(TC_ERR_INVALID, "{}, line {}: the name '{}' stands in line {} already", where, number, grant->name,
                  at->second);
    if (const auto [at, is_new] = keys.emplace(grant->key, number); !is_new)
      return fail(TC_ERR_INVALID, "{}, line {}: the key {} stands in line {} already", where, number, grant->key.text(),
                  at->second);
    keyring.grants_.push_back(std::move(*grant));
    return {};
  }));
  TC_CHECK(check_end(text, where));
  return keyring;
}

Result<Keyring> Keyring::load(const std::filesystem::path& file) {
  TC_ASSIGN(const auto text, read_policy(file, max_file_bytes));
  return parse(text, file.string());
}

const Grant* Keyring::find(const PublicKey& key) const noexcept {
  const auto at = std::ranges::find(grants_, key, &Grant::key);
  return at == grants_.end() ? nullptr : &*at;
}

const Grant* Keyring::find(std::string_view name) const noexcept {
  const auto at = std::ranges::find(grants_, name, &Grant::name);
  return at == grants_.end() ? nullptr : &*at;
}

// Uses sorted tables: a keyring may have ten thousand lines, and a node compares them between two calls.
KeyringChange compare(const Keyring& before, const Keyring& after) {
  std::map<std::string_view, const Grant*> old_names;
  std::map<PublicKey, const Grant*> old_keys, new_keys;
  for (const auto& grant : before.grants()) {
    old_names.emplace(grant.name, &grant);
    old_keys.emplace(grant.key, &grant);
  }
  KeyringChange change;
  for (const auto& grant : after.grants()) {
    new_keys.emplace(grant.key, &grant);
    const auto key = old_keys.find(grant.key);
    const bool is_revoked_now = grant.revoked && (key == old_keys.end() || !key->second->revoked);
    if (is_revoked_now) change.lost.push_back(grant.key);
    const auto name = old_names.extract(grant.name);
    if (is_revoked_now)
      change.revoked.push_back(grant.name);
    else if (name.empty())
      change.added.push_back(grant.name);
    else if (to_line(*name.mapped()) != to_line(grant))
      change.changed.push_back(grant.name);
  }
  for (const auto& grant : before.grants()) {
    if (old_names.contains(grant.name)) change.removed.push_back(grant.name);
    if (!new_keys.contains(grant.key)) change.lost.push_back(grant.key);
  }
  return change;
}

std::string to_text(const KeyringChange& change, size_t keys) {
  auto text = fmt::format("{} {}", keys, keys == 1 ? "key" : "keys");
  const auto unchanged = text.size();
  const auto add = [&](std::string_view what, std::span<const std::string> names) {
    if (!names.empty()) text += fmt::format("; {}: {}", what, some_of(names));
  };
  add("new", change.added);
  add("gone", change.removed);
  add("changed", change.changed);
  add("revoked", change.revoked);
  return text.size() != unchanged ? text : text + "; nothing changed";
}

Status add_to_keyring(const std::filesystem::path& file, const Grant& grant) {
  TC_ASSIGN(const auto lock, FileLock::of(file));
  TC_ASSIGN(auto text, read_policy(file, Keyring::max_file_bytes));
  TC_ASSIGN(const auto keyring, Keyring::parse(text, file.string()));
  const auto* const same_name = keyring.find(grant.name);
  if (const auto* const same = same_name != nullptr ? same_name : keyring.find(grant.key); same != nullptr)
    return fail(
        TC_ERR_INVALID, "{}: {} stands in line {} already; --update changes that line", file.string(),
        same_name != nullptr ? fmt::format("the name '{}'", same->name) : fmt::format("the key, as '{}',", same->name),
        same->line);
  text += to_line(grant) + '\n';
  TC_CHECK(Keyring::parse(text, file.string()));  // nothing is written that cannot be read
  return write_guarded(file, text, Replace::any);
}

Result<UpdatedGrant> update_in_keyring(const std::filesystem::path& file, std::string_view name, const PublicKey& key,
                                       std::string_view fields) {
  TC_ASSIGN(const auto lock, FileLock::of(file));
  TC_ASSIGN(const auto text, read_policy(file, Keyring::max_file_bytes));
  TC_ASSIGN(const auto keyring, Keyring::parse(text, file.string()));
  const auto* const by_name = keyring.find(name);
  const auto* const by_key = keyring.find(key);
  if (by_name == nullptr && by_key == nullptr)
    return fail(TC_ERR_INVALID, "neither the name '{}' nor the key {} is in {}: leave --update out to add it",
                name.substr(0, 80), key.text(), file.string());
  if (by_name != nullptr && by_key != nullptr && by_name != by_key)
    return fail(TC_ERR_INVALID, "{}: '{}' stands in line {}, but the key {} in line {} ({})", file.string(), name,
                by_name->line, key.text(), by_key->line, by_key->name);
  const auto& before = by_name != nullptr ? *by_name : *by_key;
  if (before.revoked)
    return fail(TC_ERR_INVALID,
                "{}, line {} ({}): the key was revoked at {}, so it may nothing, whatever its line says", file.string(),
                before.line, before.name, to_text(*before.revoked));
  auto renamed = before;
  renamed.name = name;
  renamed.key = key;
  TC_ASSIGN(auto after, with_fields(renamed, fields));
  after.line = before.line;
  const auto new_text = with_line(text, before.line, to_line(after));
  TC_CHECK(Keyring::parse(new_text, file.string()));  // nothing is written that cannot be read
  TC_CHECK(write_guarded(file, new_text, Replace::any));
  return UpdatedGrant{before, std::move(after)};
}

Result<Grant> remove_from_keyring(const std::filesystem::path& file, std::string_view name_or_key) {
  TC_ASSIGN(const auto lock, FileLock::of(file));
  TC_ASSIGN(const auto text, read_policy(file, Keyring::max_file_bytes));
  TC_ASSIGN(const auto keyring, Keyring::parse(text, file.string()));
  TC_ASSIGN(const auto* const grant, find_line(keyring, name_or_key));
  TC_CHECK(write_guarded(file, with_line(text, grant->line, std::nullopt), Replace::any));
  return *grant;
}

Status revoke_in_keyring(const std::filesystem::path& file, std::string_view name_or_key, Time now) {
  TC_ASSIGN(const auto lock, FileLock::of(file));
  TC_ASSIGN(const auto text, read_policy(file, Keyring::max_file_bytes));
  TC_ASSIGN(const auto keyring, Keyring::parse(text, file.string()));
  TC_ASSIGN(const auto* const grant, find_line(keyring, name_or_key));
  if (grant->revoked)
    return fail(TC_ERR_INVALID, "{}, line {} ({}): the key was revoked at {} already", file.string(), grant->line,
                grant->name, to_text(*grant->revoked));
  auto revoked = *grant;
  revoked.revoked = now;
  return write_guarded(file, with_line(text, grant->line, to_line(revoked)), Replace::any);
}

}  // namespace tc::trust
