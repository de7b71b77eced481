// SPDX-License-Identifier: Apache-2.0
//
// `ifunc sign` and `ifunc verify`: who vouches for the code of an .ifunc file.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "ifunc/commands.h"
#include "ifunc/json.h"
#include "ifunc/keys.h"
#include "trust/code_signature.h"
#include "trust/key_file.h"
#include "trust/permission.h"

namespace tc::command {
namespace {

struct Options {
  std::string file, keyring;
  std::vector<std::string> keys;
  bool json = false;
};

Status sign(const Options& options) {
  TC_ASSIGN(auto bundle, read_ifunc_file(options.file));
  for (const auto& name : options.keys) {
    TC_ASSIGN(const auto key, trust::find_key(name));
    TC_CHECK(trust::sign_bundle(bundle, key));
    fmt::print("{}: signed by {}\n", options.file, key.public_key().text());
  }
  return write_file_atomically(options.file, bundle.bytes());
}

// A signature of the file, and whether it counts here.
struct Verdict {
  trust::PublicKey key;
  std::string name;    // in the keyring
  std::string denial;  // empty: it counts
};

Verdict judge(const CodeSignature& signature, const Bundle& bundle, const trust::Keyring& keyring, bool only_listed) {
  Verdict verdict{{signature.key}, "", ""};
  if (const auto* const grant = keyring.find(verdict.key)) {
    verdict.name = grant->name;
    if (auto counts = trust::check_signature(*grant, signature, bundle, time_now()); !counts)
      verdict.denial = std::move(counts).error().message;
  } else if (!trust::is_valid(signature, bundle)) {
    verdict.denial = "it is not one of this code";
  } else if (only_listed) {
    verdict.denial = fmt::format("the key is in no line of the keyring {}", keyring.where());
  }
  return verdict;
}

void print(const Verdict& verdict) {
  const auto whose =
      verdict.name.empty() ? verdict.key.text() : fmt::format("{} ({})", verdict.key.text(), verdict.name);
  if (verdict.denial.empty())
    fmt::print("good signature by {}\n", whose);
  else
    fmt::print("signature by {} does not count: {}\n", whose, verdict.denial);
}

std::string as_json(const Verdict& verdict) {
  return json::object({{"key", json::string(verdict.key.text())},
                       {"name", json::string(verdict.name)},
                       {"good", json::boolean(verdict.denial.empty())},
                       {"why", json::string(verdict.denial)}});
}

Status verify(const Options& options) {
  TC_ASSIGN(const auto bundle, read_ifunc_file(options.file));
  TC_ASSIGN(const auto keyring, load_keyring(options.keyring));
  std::optional<trust::PublicKey> wanted;
  if (!options.keys.empty()) {
    TC_ASSIGN(wanted, public_key_of(options.keys.front(), keyring));
  }
  std::vector<Verdict> verdicts;
  for (const auto& signature : bundle.signatures())
    if (signature.covers == CodeSignature::whole_bundle && (!wanted || wanted->bytes == signature.key))
      verdicts.push_back(judge(signature, bundle, keyring, !wanted));
  const bool good = std::ranges::any_of(verdicts, [](const auto& verdict) { return verdict.denial.empty(); });
  if (options.json) {
    std::vector<std::string> rows;
    for (const auto& verdict : verdicts) rows.push_back(as_json(verdict));
    fmt::print("{}\n", json::object({{"name", json::string(bundle.manifest().name)},
                                     {"content_id", json::string(bundle.id().hex())},
                                     {"good", json::boolean(good)},
                                     {"signatures", json::array(rows)}}));
  } else {
    for (const auto& verdict : verdicts) print(verdict);
  }
  if (good) return {};
  return fail(TC_ERR_DENIED, "{}: no good signature of {}", options.file,
              wanted ? wanted->text() : fmt::format("a key in the keyring {}", keyring.where()));
}

}  // namespace

void add_sign(CLI::App& app, int& exit_code) {
  const auto options = std::make_shared<Options>();
  auto& signing = *app.add_subcommand("sign", "Add a signature to an .ifunc file, which stays the same code");
  signing.add_option("FILE", options->file, "An .ifunc file")->required();
  signing
      .add_option("--key", options->keys,
                  "The own key to sign with: a name, or a path with a slash; may be given often")
      ->required()
      ->allow_extra_args(false);
  signing.callback([=, &exit_code] { run_command("sign", exit_code, [&] { return sign(*options); }); });
  auto& verifying =
      *app.add_subcommand("verify", "Check that a key of the keyring, or a certain one, signed an .ifunc file");
  verifying.add_option("FILE", options->file, "An .ifunc file")->required();
  verifying.add_option("--key", options->keys, "The key that must have signed it: a name, or ed25519:...")->expected(1);
  add_keyring_option(verifying, options->keyring);
  verifying.add_flag("--json", options->json, "Print one JSON object");
  verifying.callback([=, &exit_code] { run_command("verify", exit_code, [&] { return verify(*options); }); });
}

}  // namespace tc::command
