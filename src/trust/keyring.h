// SPDX-License-Identifier: Apache-2.0
//
// The keyring: the keys that a node knows, with the rights of each. It is a file with one line for each key (grant.h;
// docs/keys.md).
//
// Threads: any for reading. An edit locks the file against other processes and threads, so it may block.
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
  // `where` names the file in errors, which begin with "FILE, line 3: ". TC_ERR_INVALID: a line is malformed, a name
  // or key stands in two lines, or the last line has no line feed. TC_ERR_TOO_LARGE.
  static Result<Keyring> parse(std::string_view text, std::string_view where);
  // A missing file is an empty keyring. TC_ERR_DENIED: other users can write the file.
  static Result<Keyring> load(const std::filesystem::path& file);

  // Null: the keyring has no such key. Finds expired and revoked lines, too.
  const Grant* find(const PublicKey& key) const noexcept;
  const Grant* find(std::string_view name) const noexcept;
  std::span<const Grant> grants() const noexcept { return grants_; }
  // The file's name, for messages. Empty: there is no keyring.
  const std::string& where() const noexcept { return where_; }

 private:
  std::string where_;
  std::vector<Grant> grants_;
};

// The differences between two keyrings. Each name stands in one list only.
struct KeyringChange {
  std::vector<std::string> added, removed, changed;
  std::vector<std::string> revoked;  // includes new lines that are revoked
  // Keys that are newly revoked or have no line any more. The node must drop the code that they sent or signed.
  std::vector<PublicKey> lost;
};
KeyringChange compare(const Keyring& before, const Keyring& after);
// "3 keys; new: ana; gone: bob", "1 key; nothing changed".
std::string to_text(const KeyringChange& change, size_t keys);

// Edits of the file. Each keeps comments and the order of the lines, and writes the file atomically. TC_ERR_INVALID:
// the name or key to add exists already, or the one to change does not exist.
Status add_to_keyring(const std::filesystem::path& file, const Grant& grant);
struct UpdatedGrant {
  Grant before, after;
};
// Changes the line that has this name, this key, or both. The line gets the name, the key and `fields` (with_fields()).
// TC_ERR_INVALID also when name and key stand in two lines, or the key is revoked.
Result<UpdatedGrant> update_in_keyring(const std::filesystem::path& file, std::string_view name, const PublicKey& key,
                                       std::string_view fields);
// Removes a line by name or key, and returns it.
Result<Grant> remove_from_keyring(const std::filesystem::path& file, std::string_view name_or_key);
// Revokes by name or key. The line stays, and records the time.
Status revoke_in_keyring(const std::filesystem::path& file, std::string_view name_or_key, Time now);

}  // namespace tc::trust
