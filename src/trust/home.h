// SPDX-License-Identifier: Apache-2.0
//
// Where keys are: $THREECHAINS_HOME, else $XDG_CONFIG_HOME/threechains, else ~/.config/threechains.
//
//     keys/NAME     private keys (key_file.h)
//     keyring       the keys of others, and what each may do (keyring.h)
//     known-nodes   the keys of nodes that were connected to (known_nodes.h)
//
// Thread: any.
#pragma once

#include <filesystem>

#include "base/result.h"

namespace tc::trust {

// TC_ERR_NOT_FOUND: no variable says where.
Result<std::filesystem::path> home();
// Of the key with that name. TC_ERR_INVALID: it is no name (1 to 64 letters, digits, '-', '_', '.', not '.' first).
Result<std::filesystem::path> key_path(std::string_view name);

inline constexpr const char* default_key = "default";

}  // namespace tc::trust
