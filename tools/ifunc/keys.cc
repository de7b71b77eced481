// SPDX-License-Identifier: Apache-2.0
#include "ifunc/keys.h"

#include <cstdio>

#include "base/clock.h"
#include "base/file.h"
#include "trust/key_file.h"

namespace tc::command {

Result<std::filesystem::path> keyring_file(const std::string& option) {
  if (!option.empty()) return std::filesystem::path(option);
  TC_ASSIGN(const auto home, trust::home());
  return home / "keyring";
}

Result<trust::Keyring> load_keyring(const std::string& option) {
  TC_ASSIGN(const auto file, keyring_file(option));
  return trust::Keyring::load(file);
}

void add_keyring_option(CLI::App& app, std::string& option) {
  app.add_option("--keyring", option, "The keyring (`keyring` in the home folder of keys)")->type_name("FILE");
}

Result<trust::PublicKey> public_key_of(const std::string& word, const trust::Keyring& keyring) {
  if (word.starts_with("ed25519:")) return trust::PublicKey::parse(word);
  const auto* const grant = keyring.find(word);
  const auto own = trust::find_key(word);
  if (own && grant != nullptr && own->public_key() != grant->key)
    return fail(TC_ERR_INVALID,
                "'{}' is the name of an own key and, in line {} of {}, of another: say which, as {} or {}", word,
                grant->line, keyring.where(), own->public_key().text(), grant->key.text());
  if (grant != nullptr) return grant->key;
  if (own) return own->public_key();
  if (own.error().code != TC_ERR_NOT_FOUND) return fail(own.error());
  return fail(TC_ERR_NOT_FOUND, "'{}' is the name of no own key, and of none in {}", word, keyring.where());
}

trust::Time time_now() { return trust::Time(std::chrono::seconds(wall_clock_s())); }

Result<Bundle> read_ifunc_file(const std::string& file) {
  TC_ASSIGN(const auto bytes, read_file(file, BundleLimits::bundle_bytes));
  auto bundle = Bundle::read(bytes);
  if (!bundle) return context(file, std::move(bundle).error());
  return bundle;
}

void run_command(const char* name, int& exit_code, const std::function<Status()>& run) {
  if (const auto done = run(); !done) {
    std::fprintf(stderr, "ifunc %s: %s\n", name, done.error().message.c_str());
    exit_code = 1;
  }
}

}  // namespace tc::command
