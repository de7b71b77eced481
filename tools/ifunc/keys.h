// SPDX-License-Identifier: Apache-2.0
//
// What the commands about trust share: which keyring, which key a word of the command line means, which time it is.
// Thread: the main one.
#pragma once

#include <CLI/CLI.hpp>

#include <filesystem>
#include <functional>
#include <string>

#include "trust/keyring.h"
#include "wire/bundle.h"

namespace tc::command {

// `option` if it names a file, else the keyring of the home folder.
Result<std::filesystem::path> keyring_file(const std::string& option);
Result<trust::Keyring> load_keyring(const std::string& option);
// Describes --keyring to the parser.
void add_keyring_option(CLI::App& app, std::string& option);

// "ed25519:...", the name of an own key, or a name in the keyring. TC_ERR_INVALID: it is none, or two keys have that name.
Result<trust::PublicKey> public_key_of(const std::string& word, const trust::Keyring& keyring);

trust::Time time_now();
Result<Bundle> read_ifunc_file(const std::string& file);

// A command that fails with a sentence on stderr and exit code 1.
void run_command(const char* name, int& exit_code, const std::function<Status()>& run);

}  // namespace tc::command
