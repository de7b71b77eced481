// SPDX-License-Identifier: Apache-2.0
//
// Files with private keys: one line of text. They are readable by their owner alone (0600), or refused.
//
// Thread: any.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "trust/key_pair.h"

namespace tc::trust {

// TC_ERR_NOT_FOUND, TC_ERR_DENIED (others can read or write it, or it is another user's), TC_ERR_MALFORMED, TC_ERR_IO.
Result<KeyPair> read_key_file(const std::filesystem::path& file);
// Its text; `file` is for messages, which never repeat what is in it. TC_ERR_MALFORMED.
Result<KeyPair> parse_private_key(std::string_view text, const std::filesystem::path& file);
// Makes the folder (0700) if need be. TC_ERR_BUSY: the file is there already.
Status write_key_file(const std::filesystem::path& file, const KeyPair& key);

// A key by its name, or by the path of its file when it holds a slash.
Result<KeyPair> find_key(std::string_view name_or_path);
// Names of the keys in home()/keys, sorted.
Result<std::vector<std::string>> list_keys();

}  // namespace tc::trust
