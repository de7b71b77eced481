// SPDX-License-Identifier: Apache-2.0
#include "trust/permission.h"

#include <unistd.h>

#include <algorithm>

#include "trust/code_signature.h"

namespace tc::trust {

namespace {

// Signatures of known keys that one decision looks at: each costs 50 us, and whoever sends code can put many there.
constexpr unsigned most_checked = 8;

// "keyring, line 3 (ana)"
std::string line_of(const Grant& grant) { return fmt::format("keyring, line {} ({})", grant.line, grant.name); }

// May the key do anything at all now?
Status check_in_force(const Grant& grant, Time now) {
  if (grant.revoked)
    return fail(TC_ERR_DENIED, "{}: the key was revoked at {}", line_of(grant), to_text(*grant.revoked));
  if (grant.until && now >= *grant.until)
    return fail(TC_ERR_DENIED, "{}: the key expired at {}", line_of(grant), to_text(*grant.until));
  return {};
}

Status check_host(const Grant& grant, const Peer& peer) {
  const bool is_allowed = grant.hosts.empty() || std::ranges::any_of(grant.hosts, [&](const auto& range) {
                            return range.contains(peer.host);
                          });
  if (is_allowed) return {};
  std::string ranges;
  for (const auto& range : grant.hosts) ranges += (ranges.empty() ? "" : ",") + range.text();
  return fail(TC_ERR_DENIED, "{}: hosts={}, and it is at {}", line_of(grant), ranges, peer.host);
}

// The peer reads this: nothing of the keyring is in it, not even where it is.
std::unexpected<Error> stranger(const Rules& rules, const PublicKey& key) {
  const auto* const where = rules.keyring.where().empty()
                                ? "not known here: this node has no keyring, which option `keyring` names"
                                : "in no line of the keyring of this node";
  return fail(TC_ERR_DENIED, "{} is {}; its operator can let it in with `ifunc key trust NAME {}`", key.text(), where,
              key.text());
}

Status check_name(const Grant* grant, const Names Grant::* names, std::string_view field, std::string_view kind,
                  std::string_view name) {
  if (grant == nullptr || (grant->*names).contains(name)) return {};
  const auto& patterns = (grant->*names).patterns();
  return fail(TC_ERR_DENIED, "{}: {}={} does not allow the {} '{}'", line_of(*grant), field,
              patterns.empty() ? "none" : fmt::format("{}", fmt::join(patterns, ",")), kind, name);
}

Status check_cell(const Rights& rights, bool has_cells) {
  if (rights.grant() == nullptr || rights.grant()->where == Where::process || has_cells) return {};
  return fail(TC_ERR_DENIED, "{}: in=cell, so its code may run only in a cell, which this node does not have",
              line_of(*rights.grant()));
}

// What the manifest asks for.
Status check_manifest(const Rights& rights, const Manifest& manifest) {
  for (const auto& library : manifest.dependencies) TC_CHECK(rights.may_use_library(library));
  for (const auto& symbol : manifest.exports) TC_CHECK(rights.may_export(symbol));
  return {};
}

std::string code_name(const Bundle& bundle) {
  return fmt::format("code '{}' ({})", bundle.manifest().name, bundle.id().short_hex());
}

Result<CodeRights> rights_by_signature(const Grant& author, const Rights& peer, const CodeSignature& signature,
                                       const Bundle& bundle, bool has_cells, Time now) {
  TC_CHECK(check_signature(author, signature, bundle, now));
  auto rights = Rights::by_line(author);
  TC_CHECK(check_cell(rights, has_cells));
  TC_CHECK(check_manifest(rights, bundle.manifest()));
  return CodeRights{peer, std::move(rights)};
}

Result<CodeRights> rights_of_signed_code(const Rules& rules, const Rights& peer, const Bundle& bundle, bool has_cells,
                                         Time now) {
  std::string why;
  unsigned checked = 0;
  for (const auto& signature : bundle.signatures()) {
    if (signature.covers != CodeSignature::whole_bundle) continue;
    const PublicKey key{signature.key};
    const auto* const grant = rules.keyring.find(key);
    if (grant == nullptr) continue;
    if (++checked > most_checked) {
      why += fmt::format("; more than {} signatures are not looked at", most_checked);
      break;
    }
    auto code = rights_by_signature(*grant, peer, signature, bundle, has_cells, now);
    if (code) return code;
    why += fmt::format("; signature by {}: {}", key.text(), code.error().message);
  }
  if (!why.empty())
    return fail(TC_ERR_DENIED, "{} has no signature that lets it run for {}{}", code_name(bundle), peer.whose(), why);
  return fail(TC_ERR_DENIED, "{} has no signature of a key in the keyring; {} may run signed code only",
              code_name(bundle), peer.whose());
}

// Asks the peer, then the author.
template <class Ask>
Status both(const CodeRights& rights, const Ask& ask) {
  TC_CHECK(ask(rights.peer));
  if (rights.author) TC_CHECK(ask(*rights.author));
  return {};
}

}  // namespace

Rights Rights::by_line(const Grant& grant) {
  Rights rights(fmt::format("{} (keyring, line {})", grant.name, grant.line));
  rights.grant_ = grant;
  return rights;
}

Status Rights::may_read(std::string_view data) const {
  if (grant() != nullptr && grant()->write.contains(data)) return {};
  return check_name(grant(), &Grant::read, "read", "data", data);
}

Status Rights::may_write(std::string_view data) const {
  return check_name(grant(), &Grant::write, "write", "data", data);
}

Status Rights::may_use_library(std::string_view library) const {
  return check_name(grant(), &Grant::libraries, "libs", "library", library);
}

Status Rights::may_export(std::string_view symbol) const {
  return check_name(grant(), &Grant::exports, "exports", "symbol", symbol);
}

Status CodeRights::may_read(std::string_view data) const {
  return both(*this, [&](const Rights& rights) { return rights.may_read(data); });
}
Status CodeRights::may_write(std::string_view data) const {
  return both(*this, [&](const Rights& rights) { return rights.may_write(data); });
}
Status CodeRights::may_use_library(std::string_view library) const {
  return both(*this, [&](const Rights& rights) { return rights.may_use_library(library); });
}
Status CodeRights::may_export(std::string_view symbol) const {
  return both(*this, [&](const Rights& rights) { return rights.may_export(symbol); });
}

Result<Rights> rights_of(const Rules& rules, const Peer& peer, Time now) {
  const auto* const grant = peer.key ? rules.keyring.find(*peer.key) : nullptr;
  if (grant != nullptr) TC_CHECK(check_in_force(*grant, now));
  if (peer.same_user) return Rights::everything(fmt::format("user {} of this host", ::geteuid()));
  if (peer.on_trusted_network) return Rights::everything(fmt::format("{}, on a trusted network", peer.text));
  if (!peer.key)
    return fail(TC_ERR_DENIED, "{} is not trusted: without a key only user {} of this host is", peer.text, ::geteuid());
  if (peer.key == rules.own_key) return Rights::everything(fmt::format("{}, with this node's own key", peer.text));
  if (std::ranges::find(rules.vouched, *peer.key) != rules.vouched.end())
    return Rights::everything(fmt::format("{}, for which the launcher vouches", peer.text));
  if (grant != nullptr) {
    TC_CHECK(check_host(*grant, peer));
    return Rights::by_line(*grant);
  }
  if (rules.trust_any) return Rights::everything(fmt::format("{}, as everybody (trust=any)", peer.text));
  return stranger(rules, *peer.key);
}

Status check_signature(const Grant& author, const CodeSignature& signature, const Bundle& bundle, Time now) {
  TC_CHECK(check_in_force(author, now));
  if (author.run == Run::none) return fail(TC_ERR_DENIED, "{}: run=none", line_of(author));
  if (is_valid(signature, bundle)) return {};
  return fail(TC_ERR_DENIED, "{}: the signature is wrong: it is not one of this code", line_of(author));
}

Result<CodeRights> rights_of_code(const Rules& rules, const Rights& peer, const Bundle& bundle, bool has_cells,
                                  Time now) {
  if (peer.grant() != nullptr) TC_CHECK(check_in_force(*peer.grant(), now));
  if (peer.run() == Run::none) return fail(TC_ERR_DENIED, "{}: run=none", line_of(*peer.grant()));
  TC_CHECK(check_cell(peer, has_cells));
  TC_CHECK(check_manifest(peer, bundle.manifest()));
  if (peer.run() == Run::any) return CodeRights{peer, std::nullopt};
  return rights_of_signed_code(rules, peer, bundle, has_cells, now);
}

}  // namespace tc::trust
