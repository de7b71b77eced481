// SPDX-License-Identifier: Apache-2.0
//
// `ifunc key`: own keys, the keys of others and what each may do, and the keys of nodes that were connected to.
#include <fmt/format.h>

#include <cstdio>

#include "base/file.h"
#include "ifunc/commands.h"
#include "ifunc/json.h"
#include "ifunc/keys.h"
#include "trust/key_file.h"
#include "trust/known_nodes.h"
#include "trust/last_uses.h"

namespace tc::command {
namespace {

constexpr size_t most_key_text = 4096;

struct Options {
  std::string name, key, keyring, address;
  bool json = false, update = false;
  std::vector<std::pair<const char*, std::string>> fields;  // of the keyring's line, which `ifunc key trust` writes
};

std::string own_key_json(const std::string& name, const std::string& file, const trust::PublicKey& key) {
  return json::object({{"name", json::string(name)}, {"key", json::string(key.text())}, {"file", json::string(file)}});
}

void print_own_key(const Options& options, const std::string& file, const trust::PublicKey& key) {
  fmt::print("{}\n", options.json ? own_key_json(options.name, file, key) : key.text());
}

Status new_key(const Options& options) {
  TC_ASSIGN(const auto file, trust::key_path(options.name));
  TC_ASSIGN(const auto key, trust::KeyPair::fresh());
  TC_CHECK(trust::write_key_file(file, key));
  print_own_key(options, file.string(), key.public_key());
  return {};
}

Status show_key(const Options& options) {
  TC_ASSIGN(const auto key, trust::find_key(options.name));
  std::string file = options.name;
  if (file.find('/') == std::string::npos) {
    TC_ASSIGN(const auto path, trust::key_path(options.name));
    file = path.string();
  }
  print_own_key(options, file, key.public_key());
  return {};
}

// One that cannot be read is shown with the reason.
std::string describe_own_key(const std::string& name, bool as_json) {
  const auto key = trust::find_key(name);
  const auto file = trust::key_path(name).value_or("").string();
  if (as_json && key) return own_key_json(name, file, key->public_key());
  if (as_json) return json::object({{"name", json::string(name)}, {"error", json::string(key.error().message)}});
  return fmt::format("  {:<16} {}\n", name, key ? key->public_key().text() : key.error().message);
}

std::string describe_grant(const trust::Grant& grant, const trust::UseTimes& uses, bool as_json) {
  const auto use = uses.find(grant.key);
  const auto last = use != uses.end() ? trust::to_text(use->second) : "";
  if (!as_json)
    return fmt::format("  {:<16} {}  {}{}{}\n", grant.name, grant.key.text(), fields_of(grant),
                       last.empty() ? "" : "  last used ", last);
  std::vector<std::pair<std::string_view, std::string>> fields;
  const auto text = fields_of(grant);
  for (std::string_view rest = text; !rest.empty();) {
    const auto field = rest.substr(0, rest.find(' '));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    fields.emplace_back(field.substr(0, field.find('=')), json::string(field.substr(field.find('=') + 1)));
  }
  std::vector<std::pair<std::string_view, std::string>> row{{"line", fmt::format("{}", grant.line)},
                                                            {"name", json::string(grant.name)},
                                                            {"key", json::string(grant.key.text())},
                                                            {"fields", json::object(fields)}};
  if (!last.empty()) row.emplace_back("last_used", json::string(last));
  return json::object(row);
}

// They decide nothing: without them the rest is listed.
trust::UseTimes last_uses(const std::filesystem::path& home) {
  const auto uses = trust::LastUses(home / "last-uses").read();
  if (!uses) fmt::print(stderr, "ifunc key list: when keys were last used is not known: {}\n", uses.error().message);
  return uses.value_or(trust::UseTimes());
}

Status list_keys(const Options& options) {
  TC_ASSIGN(const auto home, trust::home());
  TC_ASSIGN(const auto names, trust::list_keys());
  TC_ASSIGN(const auto keyring, load_keyring(options.keyring));
  std::vector<std::string> own, lines;
  for (const auto& name : names) own.push_back(describe_own_key(name, options.json));
  const auto uses = last_uses(home);
  for (const auto& grant : keyring.grants()) lines.push_back(describe_grant(grant, uses, options.json));
  if (options.json) {
    const auto ring = json::object({{"file", json::string(keyring.where())}, {"lines", json::array(lines)}});
    fmt::print("{}\n", json::object({{"keys", json::array(own)}, {"keyring", ring}}));
    return {};
  }
  fmt::print("own keys, in {}\n{}", (home / "keys").string(),
             own.empty() ? "  none\n" : fmt::format("{}", fmt::join(own, "")));
  fmt::print("keyring {}\n{}", keyring.where(), lines.empty() ? "  empty\n" : fmt::format("{}", fmt::join(lines, "")));
  return {};
}

// A key as text, or the file that it was written to. Messages do not repeat what the file holds: it may be a secret.
Result<trust::PublicKey> key_or_file(const std::string& word) {
  if (word.starts_with("ed25519:")) return trust::PublicKey::parse(word);
  TC_ASSIGN(const auto bytes, read_file(word, most_key_text));
  auto text = as_text(bytes);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (auto key = trust::PublicKey::parse(text)) return key;
  if (text.starts_with("threechains-private-key"))
    return fail(TC_ERR_INVALID, "{} is a private key: its owner prints the public half with `ifunc key show`", word);
  return fail(TC_ERR_INVALID, "{} holds no public key, which is one line: 'ed25519:' and 43 characters", word);
}

// As they stand in a line: "run=any rate=7".
Result<std::string> given_fields(const Options& options) {
  std::string fields;
  for (const auto& [name, value] : options.fields) {
    if (value.empty()) continue;
    if (value.find_first_of(" \t") != std::string::npos)
      return fail(TC_ERR_INVALID, "--{}: '{}' holds a blank, which parts the fields of a line", name, value);
    fields += fmt::format("{}{}={}", fields.empty() ? "" : " ", name, value);
  }
  return fields;
}

Status trust_key(const Options& options) {
  TC_ASSIGN(const auto key, key_or_file(options.key));
  if (options.name.find_first_of(" \t") != std::string::npos)
    return fail(TC_ERR_INVALID, "'{}' is no name: it holds a blank", options.name);
  TC_ASSIGN(const auto fields, given_fields(options));
  TC_ASSIGN(const auto file, keyring_file(options.keyring));
  if (options.update) {
    TC_ASSIGN(const auto updated, trust::update_in_keyring(file, options.name, key, fields));
    fmt::print("{}: {}\nit was: {}\n", file.string(), to_line(updated.after), to_line(updated.before));
    return {};
  }
  TC_ASSIGN(const auto grant, trust::parse_grant(fmt::format("{} {} {}", options.name, key.text(), fields)));
  TC_CHECK(trust::add_to_keyring(file, grant));
  fmt::print("{}: {}\n", file.string(), trust::to_line(grant));
  return {};
}

Status revoke_key(const Options& options) {
  TC_ASSIGN(const auto file, keyring_file(options.keyring));
  const auto now = time_now();
  TC_CHECK(trust::revoke_in_keyring(file, options.key, now));
  fmt::print("{}: {} is revoked since {}\n", file.string(), options.key, trust::to_text(now));
  return {};
}

Status untrust_key(const Options& options) {
  TC_ASSIGN(const auto file, keyring_file(options.keyring));
  TC_ASSIGN(const auto grant, trust::remove_from_keyring(file, options.key));
  fmt::print("{}: took out line {}: {}\n", file.string(), grant.line, to_line(grant));
  if (grant.revoked)
    fmt::print("nothing says any more that {} is revoked: with trust=any, or a launcher's word, it is let in again\n",
               grant.name);
  return {};
}

Status forget_node(const Options& options) {
  TC_ASSIGN(const auto home, trust::home());
  const trust::KnownNodes known(home / "known-nodes");
  TC_ASSIGN(const bool was_known, known.forget(options.address));
  if (!was_known) return fail(TC_ERR_NOT_FOUND, "{} has no key for {}", known.file().string(), options.address);
  fmt::print("{}: the key of {} is forgotten\n", known.file().string(), options.address);
  return {};
}

// The fields of a line, in its order.
void add_field_options(CLI::App& app, Options& options) {
  constexpr std::pair<const char*, const char*> fields[] = {
      {"run", "What it may run: signed (the default), any, none"},
      {"in", "Where its code runs: process (the default), cell"},
      {"read", "Named data that its code may read, such as table*,log; none; without --write it may write none"},
      {"write", "Named data that its code may read and write"},
      {"libs", "Libraries that its code may use, of those that the node allows; none"},
      {"exports", "Symbols that a library of its may export to other code; none"},
      {"hosts", "Where it may connect from: addresses and ranges, such as 10.0.0.0/8"},
      {"at", "Where this key answers, and no other: 10.0.0.1:7001,10.0.0.2:7001"},
      {"code", "Bytes of its code that a node keeps, such as 16M"},
      {"rate", "Messages a second"},
      {"until", "It may do nothing from then on: 2027-01-31 or 2027-01-31T12:00:00Z"}};
  options.fields.reserve(std::size(fields));  // the parser keeps their addresses
  for (const auto& [name, about] : fields) {
    options.fields.emplace_back(name, "");
    app.add_option(fmt::format("--{}", name), options.fields.back().second, about);
  }
}

using Run = Status (*)(const Options&);

CLI::App& add(CLI::App& app, const char* name, const char* about, const std::shared_ptr<Options>& options, Run run,
              int& exit_code) {
  auto* const sub = app.add_subcommand(name, about);
  const auto full_name = fmt::format("key {}", name);
  sub->callback([=, &exit_code] { run_command(full_name.c_str(), exit_code, [&] { return run(*options); }); });
  return *sub;
}

void add_json(CLI::App& app, Options& options) { app.add_flag("--json", options.json, "Print one JSON object"); }

}  // namespace

void add_key(CLI::App& app, int& exit_code) {
  auto& key = *app.add_subcommand("key", "Make keys, and say whose keys are trusted with what");
  key.require_subcommand(1);
  const auto options = std::make_shared<Options>();
  auto& made = add(key, "new", "Make a key of one's own; prints its public half", options, new_key, exit_code);
  made.add_option("NAME", options->name, "Its name")->required();
  add_json(made, *options);
  auto& shown = add(key, "show", "Print the public half of an own key", options, show_key, exit_code);
  shown.add_option("NAME", options->name, "Its name, or a path with a slash; `default` when left out");
  add_json(shown, *options);
  shown.preparse_callback([options](size_t) { options->name = trust::default_key; });
  auto& listed = add(key, "list", "List own keys and the lines of the keyring", options, list_keys, exit_code);
  add_keyring_option(listed, options->keyring);
  add_json(listed, *options);
  auto& trusted = add(key, "trust", "Add a key to the keyring", options, trust_key, exit_code);
  trusted.add_option("NAME", options->name, "What to call it")->required();
  trusted.add_option("KEY", options->key, "The key, ed25519:..., or a file that holds it")->required();
  add_field_options(trusted, *options);
  trusted.add_flag(
      "--update", options->update,
      "Change the line that has this name or key: it gets NAME, KEY and the fields that are given, and keeps "
      "its others");
  add_keyring_option(trusted, options->keyring);
  auto& untrusted =
      add(key, "untrust", "Take a key out of the keyring; `revoke` keeps the line", options, untrust_key, exit_code);
  untrusted.add_option("KEY", options->key, "Its name in the keyring, or the key")->required();
  add_keyring_option(untrusted, options->keyring);
  auto& revoked =
      add(key, "revoke", "Say in the keyring that a key may do nothing any more", options, revoke_key, exit_code);
  revoked.add_option("KEY", options->key, "Its name in the keyring, or the key")->required();
  add_keyring_option(revoked, options->keyring);
  auto& forgotten = add(key, "forget", "Forget the key of a node, so that the next one that answers there is taken",
                        options, forget_node, exit_code);
  forgotten.add_option("ADDRESS", options->address, "The node's address, HOST:PORT")->required();
}

}  // namespace tc::command
