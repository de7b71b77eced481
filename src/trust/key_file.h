// SPDX-License-Identifier: Apache-2.0
//
// The files of private keys, and the folder of all keys. A private key is one line of text in a file of its own. A file
// that other users can read is refused; write_key_file() makes it with mode 0600.
//
// home() is $THREECHAINS_HOME, else $XDG_CONFIG_HOME/threechains, else ~/.config/threechains. It holds:
//
//     keys/NAME     private keys
//     keyring       the keys of others, with their rights (keyring.h)
//     known-nodes   the keys of nodes that this user connected to (known_nodes.h)
//     last-uses     when each key was last used (last_uses.h)
//
// Threads: any.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "trust/key_pair.h"

namespace tc::trust {

// TC_ERR_NOT_FOUND, TC_ERR_DENIED (others can read or write it, or it is another user's), TC_ERR_MALFORMED, TC_ERR_IO.
Result<KeyPair> read_key_file(const std::filesystem::path& file);
// Reads the text of a key file. Messages name `file`, and never repeat what is in it. TC_ERR_MALFORMED.
Result<KeyPair> parse_private_key(std::string_view text, const std::filesystem::path& file);
// Makes the folder (0700) if it is missing. TC_ERR_BUSY: the file exists.
Status write_key_file(const std::filesystem::path& file, const KeyPair& key);

// Reads a key by its name, or by the path of its file. Text with a slash is a path.
Result<KeyPair> find_key(std::string_view name_or_path);
// The names of the keys in home()/keys, sorted.
Result<std::vector<std::string>> list_keys();
// Is the private half of that key in home()/keys? Then whoever proved it is of our own user.
bool is_own_key(const PublicKey& key);

// TC_ERR_NOT_FOUND: none of the three variables is set.
Result<std::filesystem::path> home();
// The file of the key with that name. TC_ERR_INVALID: `name` cannot name a key (is_key_name()).
Result<std::filesystem::path> key_path(std::string_view name);

inline constexpr const char* default_key = "default";

}  // namespace tc::trust
