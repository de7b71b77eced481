// SPDX-License-Identifier: Apache-2.0
//
// `ifunc trust explain`: what a node would do with an .ifunc file that a peer sends, and why. It asks the functions that a
// node asks.
#include <fmt/format.h>

#include "ifunc/commands.h"
#include "ifunc/json.h"
#include "ifunc/keys.h"
#include "trust/code_signature.h"
#include "trust/key_file.h"
#include "trust/permission.h"

namespace tc::command {
namespace {

struct Options {
  std::string file, from, host, keyring, own_key;
  std::string trust = "user";
  bool json = false;
};

// What was asked, and the answer. The last one decides.
struct Step {
  const char* question;
  bool is_yes;
  std::string answer;
};

struct Explanation {
  std::vector<Step> steps;
  bool runs = false;
};

std::string names_text(const trust::Names& names) {
  if (names.is_all()) return "all";
  return names.patterns().empty() ? "none" : fmt::format("{}", fmt::join(names.patterns(), ", "));
}

std::string describe(const trust::Rights& rights) {
  const auto* const grant = rights.grant();
  if (grant == nullptr) return fmt::format("{}: everything that the node's options allow", rights.whose());
  auto text = fmt::format("{}: reads data {}; writes data {}; uses libraries {}; exports {}", rights.whose(),
                          names_text(grant->read), names_text(grant->write), names_text(grant->libraries),
                          names_text(grant->exports));
  if (grant->code_budget) text += fmt::format("; at most {} bytes of code", *grant->code_budget);
  if (grant->rate) text += fmt::format("; at most {} messages a second", *grant->rate);
  if (grant->until) text += fmt::format("; until {}", trust::to_text(*grant->until));
  return text + "; of all this what the node's options allow";
}

std::string who(const trust::PublicKey& key, const trust::Keyring& keyring) {
  const auto* const grant = keyring.find(key);
  if (grant == nullptr) return fmt::format("{}, in no line of the keyring", key.text());
  const auto fields = fields_of(*grant);
  return fmt::format("{}, {} (keyring, line {}){}{}", key.text(), grant->name, grant->line, fields.empty() ? "" : ": ",
                     fields);
}

void explain_signatures(Explanation& explanation, const Bundle& bundle, const trust::Keyring& keyring) {
  for (const auto& signature : bundle.signatures()) {
    if (signature.covers != CodeSignature::whole_bundle) continue;
    const bool is_valid = trust::is_valid(signature, bundle);
    explanation.steps.push_back({"signed", is_valid,
                                 fmt::format("by {}{}", who({signature.key}, keyring),
                                             is_valid ? "" : "; but the signature is not one of this code")});
  }
}

// The key that a node of this user would have.
std::optional<trust::PublicKey> own_key(const Options& options) {
  const auto key = trust::find_key(options.own_key.empty() ? trust::default_key : options.own_key);
  if (!key) return {};
  return key->public_key();
}

std::string place_of(const trust::CodeRights& code) {
  if (code.wants_cell()) return "in a cell: a line of the keyring says in=cell";
  return code.is_trusted() ? "in the node's process, and in a cell where the node has isolate=all"
                           : "in a cell, where `ifunc serve` can have one; in the node's process where isolate is none";
}

Result<Explanation> explain(const Options& options) {
  TC_ASSIGN(const auto bundle, read_ifunc_file(options.file));
  trust::Rules rules;
  TC_ASSIGN(rules.keyring, load_keyring(options.keyring));
  rules.trust_any = options.trust == "any";
  rules.own_key = own_key(options);
  if (!rules.own_key && !options.own_key.empty()) {
    TC_CHECK(trust::find_key(options.own_key));
  }
  TC_ASSIGN(const auto key, public_key_of(options.from, rules.keyring));
  const auto* const grant = rules.keyring.find(key);
  if (grant != nullptr && !grant->hosts.empty() && options.host.empty())
    return fail(TC_ERR_INVALID, "line {} of {} says where {} may connect from: name the host with --host ADDRESS",
                grant->line, rules.keyring.where(), grant->name);

  Explanation explanation;
  auto& steps = explanation.steps;
  steps.push_back({"keyring", true, rules.keyring.where()});
  steps.push_back({"peer", true, who(key, rules.keyring)});
  const trust::Peer peer{.text = options.host.empty() ? options.from : options.host, .host = options.host, .key = key};
  const auto rights = trust::rights_of(rules, peer, time_now());
  steps.push_back({"connects", rights.has_value(), rights ? rights->whose() : rights.error().message});
  if (!rights) return explanation;
  steps.push_back({"code", true, fmt::format("'{}', content id {}", bundle.manifest().name, bundle.id().hex())});
  explain_signatures(explanation, bundle, rules.keyring);
  const auto code = trust::rights_of_code(rules, *rights, nullptr, bundle, true, time_now());
  explanation.runs = code.has_value();
  const auto why = [&] { return code->author ? "signed by " + code->author->whose() : "any code of this peer runs"; };
  steps.push_back({"runs", code.has_value(), code ? why() : code.error().message});
  if (!code) return explanation;
  steps.push_back({"rights", true, describe(code->peer)});
  const bool by_peer = code->author && code->author->grant()->key == key;
  if (code->author && !by_peer) steps.push_back({"rights", true, "and also those of " + describe(*code->author)});
  steps.push_back({"place", true, place_of(*code)});
  return explanation;
}

void print(const Explanation& explanation, bool as_json) {
  std::vector<std::string> rows;
  for (const auto& [question, is_yes, answer] : explanation.steps) {
    if (as_json)
      rows.push_back(json::object(
          {{"step", json::string(question)}, {"yes", json::boolean(is_yes)}, {"why", json::string(answer)}}));
    else
      fmt::print("{:<9} {:<4} {}\n", question, is_yes ? "yes" : "no", answer);
  }
  if (as_json)
    fmt::print("{}\n", json::object({{"runs", json::boolean(explanation.runs)}, {"steps", json::array(rows)}}));
}

Status run(const Options& options, int& exit_code) {
  TC_ASSIGN(const auto explanation, explain(options));
  print(explanation, options.json);
  exit_code = explanation.runs ? 0 : 1;
  return {};
}

}  // namespace

void add_trust(CLI::App& app, int& exit_code) {
  auto& trust = *app.add_subcommand("trust", "Say what a node would let others do, and why");
  trust.require_subcommand(1);
  const auto options = std::make_shared<Options>();
  auto& explaining =
      *trust.add_subcommand("explain", "Would a node run this file for that peer? Exit code 0: it would");
  explaining.add_option("FILE", options->file, "An .ifunc file")->required();
  explaining.add_option("--from", options->from, "The peer that sends it: ed25519:..., or a name of a key")->required();
  explaining.add_option("--host", options->host, "The address that the peer connects from");
  add_keyring_option(explaining, options->keyring);
  explaining.add_option("--key", options->own_key, "The node's own key (the one named `default`, if there is one)");
  explaining.add_option("--trust", options->trust, "The node's option trust")->check(CLI::IsMember({"user", "any"}));
  explaining.add_flag("--json", options->json, "Print one JSON object");
  explaining.callback(
      [=, &exit_code] { run_command("trust explain", exit_code, [&] { return run(*options, exit_code); }); });
}

}  // namespace tc::command
