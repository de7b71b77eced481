// SPDX-License-Identifier: Apache-2.0
#include "trust/keyring.h"

#include <algorithm>
#include <map>

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

// Names and values of a keyring reach logs and terminals.
bool is_printable(std::string_view line) noexcept {
  return std::ranges::all_of(line, [](char letter) { return letter == '\t' || (letter >= ' ' && letter <= '~'); });
}

Result<Grant> read_line(std::string_view line) {
  if (line.size() > Keyring::max_line_bytes)
    return fail(TC_ERR_TOO_LARGE, "it is {} bytes long when at most {} are allowed", line.size(),
                Keyring::max_line_bytes);
  if (!is_printable(line)) return fail(TC_ERR_INVALID, "it holds a character that is not printable ASCII");
  return parse_grant(line);
}

// The text with that line (from 1) replaced.
std::string with_line(std::string_view text, unsigned number, std::string_view line) {
  std::string out;
  (void)each_line(text, [&](std::string_view old, unsigned at) -> Status {
    out.append(at == number ? line : old).push_back('\n');
    return {};
  });
  return out;
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

Status add_to_keyring(const std::filesystem::path& file, const Grant& grant) {
  TC_ASSIGN(const auto lock, FileLock::of(file));
  TC_ASSIGN(auto text, read_policy(file, Keyring::max_file_bytes));
  if (!text.empty() && text.back() != '\n') text += '\n';
  text += to_line(grant) + '\n';
  TC_CHECK(Keyring::parse(text, file.string()));  // nothing is written that cannot be read
  return write_guarded(file, text, Replace::any);
}

Status revoke_in_keyring(const std::filesystem::path& file, std::string_view name_or_key, Time now) {
  TC_ASSIGN(const auto lock, FileLock::of(file));
  TC_ASSIGN(const auto text, read_policy(file, Keyring::max_file_bytes));
  TC_ASSIGN(const auto keyring, Keyring::parse(text, file.string()));
  const auto key = PublicKey::parse(name_or_key);
  const auto* const grant = key ? keyring.find(*key) : keyring.find(name_or_key);
  if (grant == nullptr)
    return fail(TC_ERR_INVALID, "'{}' is no name and no key in {}", name_or_key.substr(0, 80), file.string());
  if (grant->revoked)
    return fail(TC_ERR_INVALID, "{}, line {} ({}): the key was revoked at {} already", file.string(), grant->line,
                grant->name, to_text(*grant->revoked));
  auto revoked = *grant;
  revoked.revoked = now;
  return write_guarded(file, with_line(text, grant->line, to_line(revoked)), Replace::any);
}

}  // namespace tc::trust
