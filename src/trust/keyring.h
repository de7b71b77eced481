// SPDX-License-Identifier: Apache-2.0
//
// The keys that a node knows and what each may do: a file with one line a key (grant.h; docs/keys.md).
//
// Thread: any for reading; an edit locks the file against other processes.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trust/grant.h"

namespace tc::trust {

class Keyring {
 public:
  static constexpr size_t max_file_bytes = 1024 * 1024;
  static constexpr size_t max_line_bytes = 4096;

  Keyring() = default;
  // `where` names the file in errors, which name the line too: "FILE, line 3: ...". TC_ERR_INVALID: a line cannot be read, or a name
  // or key stands in two lines. TC_ERR_TOO_LARGE.
  static Result<Keyring> parse(std::string_view text, std::string_view where);
  // A file that is not there is an empty keyring. Refused: one that other users may write (TC_ERR_DENIED).
  static Result<Keyring> load(const std::filesystem::path& file);

  // Null: the key is not in it. Lines that are expired or revoked are found as well.
  const Grant* find(const PublicKey& key) const noexcept;
  const Grant* find(std::string_view name) const noexcept;
  std::span<const Grant> grants() const noexcept { return grants_; }
  // The file, for messages; empty: there is no keyring.
  const std::string& where() const noexcept { return where_; }

 private:
  std::string where_;
  std::vector<Grant> grants_;
};

// What differs between two keyrings. Each name stands in one list only.
struct KeyringChange {
  std::vector<std::string> added, removed, changed;
  std::vector<std::string> revoked;  // new lines that are revoked, too
  // Keys that were revoked, or whose line is gone: what they brought and signed must go.
  std::vector<PublicKey> lost;
};
KeyringChange compare(const Keyring& before, const Keyring& after);
// "3 keys; new: ana; gone: bob", "1 key; nothing changed".
std::string to_text(const KeyringChange& change, size_t keys);

// Edits of the file. Comments and the order of the lines stay, and it is written atomically. TC_ERR_INVALID: a name or key is
// there already, or is not there.
Status add_to_keyring(const std::filesystem::path& file, const Grant& grant);
struct UpdatedGrant {
  Grant before, after;
};
// Changes the line that has this name, this key, or both. `fields` are those of with_fields(); the line gets the name and the
// key, too. TC_ERR_INVALID also: they stand in two lines, or the key is revoked.
Result<UpdatedGrant> update_in_keyring(const std::filesystem::path& file, std::string_view name, const PublicKey& key,
                                       std::string_view fields);
// By name or key. Returns what the line said.
Result<Grant> remove_from_keyring(const std::filesystem::path& file, std::string_view name_or_key);
// By name or key. The line stays, and says since when.
Status revoke_in_keyring(const std::filesystem::path& file, std::string_view name_or_key, Time now);

}  // namespace tc::trust
