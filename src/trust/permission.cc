// SPDX-License-Identifier: Apache-2.0
#include "trust/permission.h"

#include <unistd.h>

#include <algorithm>

#include "trust/code_signature.h"

namespace tc::trust {

namespace {

// A decision checks at most this many signatures of known keys. Each check costs 50 us, and the sender chooses how many
// there are.
constexpr unsigned most_checked = 8;

// "keyring, line 3 (ana)"
std::string line_of(const Grant& grant) { return fmt::format("keyring, line {} ({})", grant.line, grant.name); }

// TC_ERR_DENIED: the key is revoked or expired.
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

// The refusal of an unknown key. The peer reads it, so it tells nothing about the keyring, not even its path.
std::unexpected<Error> stranger(const Rules& rules, const PublicKey& key, bool is_temporary = false) {
  const auto* const where = rules.keyring.where().empty()
                                ? "not known here: this node has no keyring, which option `keyring` names"
                                : "in no line of the keyring of this node";
  if (is_temporary)
    return fail(
        TC_ERR_DENIED,
        "{} is {}; it lasts only as long as its process: make one that lasts, with `ifunc key new default`, which "
        "the node's operator can let in",
        key.text(), where);
  return fail(TC_ERR_DENIED, "{} is {}; its operator can let it in with `ifunc key trust NAME {}`", key.text(), where,
              key.text());
}

std::unexpected<Error> without_key(const Peer& peer) {
  if (peer.why_not_same_user.empty())
    return fail(TC_ERR_DENIED, "{} is not trusted: without a key only user {} of this host is", peer.text, ::geteuid());
  return fail(
      TC_ERR_DENIED,
      "{} is not trusted, though this node runs as user {}, too: {}, or connect by TCP, with a key that the node's "
      "operator lets in",
      peer.text, ::geteuid(), peer.why_not_same_user);
}

Status check_cell(const Rights& rights, bool has_cells) {
  if (rights.is_all() || rights.grant()->where == Where::process || has_cells) return {};
  return fail(TC_ERR_DENIED, "{}: in=cell, so its code may run only in a cell, which this node does not have",
              line_of(*rights.grant()));
}

// Checks the libraries and exports that the manifest asks for.
Status check_manifest(const Rights& rights, const Manifest& manifest) {
  for (const auto& library : manifest.dependencies) TC_CHECK(rights.may_use_library(library));
  for (const auto& symbol : manifest.exports) TC_CHECK(rights.may_export(symbol));
  return {};
}

std::string code_name(const Bundle& bundle) {
  return fmt::format("code '{}' ({})", bundle.manifest().name, bundle.id().short_hex());
}

Result<Rights> rights_by_signature(const Grant& author, const CodeSignature& signature, const Bundle& bundle,
                                   bool has_cells, Time now) {
  TC_CHECK(check_signature(author, signature, bundle, now));
  auto rights = Rights::by_line(author);
  TC_CHECK(check_cell(rights, has_cells));
  TC_CHECK(check_manifest(rights, bundle.manifest()));
  return rights;
}

// The rights of the first author whose signature lets the code run. `whose` names the party that may run signed code
// only.
Result<Rights> rights_of_author(const Rules& rules, std::string_view whose, const Bundle& bundle, bool has_cells,
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
    auto author = rights_by_signature(*grant, signature, bundle, has_cells, now);
    if (author) return author;
    why += fmt::format("; signature by {}: {}", key.text(), author.error().message);
  }
  if (!why.empty())
    return fail(TC_ERR_DENIED, "{} has no signature that lets it run for {}{}", code_name(bundle), whose, why);
  return fail(TC_ERR_DENIED, "{} has no signature of a key in the keyring; {} may run signed code only",
              code_name(bundle), whose);
}

// The rights of a principal, by its key in the chain.
Result<Rights> rights_on_behalf(const Rules& rules, const Rights& peer, const PublicKey& key, Time now) {
  TC_CHECK(check_keyring(rules));
  const auto* const grant = rules.keyring.find(key);
  if (grant != nullptr) TC_CHECK(check_in_force(*grant, now));
  if (key == rules.own_key) return Rights::all(fmt::format("{}, this node's own key", key.text()), key.text());
  if (std::ranges::find(rules.vouched, key) != rules.vouched.end())
    return Rights::all(fmt::format("{}, for which the launcher vouches", key.text()), key.text());
  if (grant != nullptr) return Rights::by_line(*grant);
  if (rules.trust_any) return Rights::all(fmt::format("{}, as everybody (trust=any)", key.text()), key.text());
  const auto unknown = stranger(rules, key);
  return fail(TC_ERR_DENIED, "{} calls on behalf of another: {}", peer.whose(), unknown.error().message);
}

// Checks that the party may run code with this manifest.
Status check_principal(const Rights& rights, const Manifest& manifest, bool has_cells, Time now) {
  if (rights.grant() != nullptr) TC_CHECK(check_in_force(*rights.grant(), now));
  if (rights.run() == Run::none)
    return rights.grant() != nullptr ? fail(TC_ERR_DENIED, "{}: run=none", line_of(*rights.grant()))
                                     : fail(TC_ERR_DENIED, "{} may run nothing", rights.whose());
  TC_CHECK(check_cell(rights, has_cells));
  return check_manifest(rights, manifest);
}

// The chain for calls to other nodes: with the peer's own key, unless the peer may do everything here.
wire::SharedChain chain_onwards(const Rights& peer, const wire::SharedChain& chain) {
  if (peer.grant() == nullptr) return chain;
  auto keys = chain != nullptr ? chain->keys() : std::vector<wire::Chain::Key>();
  if (std::ranges::find(keys, peer.grant()->key.bytes) != keys.end()) return chain;
  keys.push_back(peer.grant()->key.bytes);
  return std::make_shared<const wire::Chain>(std::move(keys));
}

// Asks the peer, then the principals, then the author.
template <class Ask>
Status each(const CodeRights& rights, const Ask& ask) {
  TC_CHECK(ask(rights.peer));
  for (const auto& one : rights.behalf) TC_CHECK(ask(one));
  if (rights.author) TC_CHECK(ask(*rights.author));
  return {};
}

}  // namespace

bool CodeRights::wants_cell() const noexcept {
  return !each(*this, [](const Rights& one) -> Status {
    if (one.grant() != nullptr && one.grant()->where == Where::cell) return std::unexpected(Error{});
    return {};
  });
}

bool CodeRights::is_trusted() const noexcept {
  return each(*this,
              [](const Rights& one) -> Status {
                if (one.run() != Run::any) return std::unexpected(Error{});
                return {};
              })
      .has_value();
}

// The order of the parties does not matter, nor whether the peer is named in its own chain once more.
bool CodeRights::is_same(const CodeRights& other) const noexcept {
  const auto has_all_of = [](const CodeRights& one, const CodeRights& another) {
    return std::ranges::all_of(another.behalf, [&](const Rights& party) {
      return party.is_same(one.peer) ||
             std::ranges::any_of(one.behalf, [&](const Rights& own) { return party.is_same(own); });
    });
  };
  const bool is_same_author = author ? other.author && author->is_same(*other.author) : !other.author;
  const bool is_same_chain =
      chain == other.chain || (chain != nullptr && other.chain != nullptr && *chain == *other.chain);
  return is_same_author && is_same_chain && peer.is_same(other.peer) && has_all_of(*this, other) &&
         has_all_of(other, *this);
}

Rights Rights::by_line(const Grant& grant) {
  Rights rights;
  rights.extent_ = Extent::line;
  rights.whose_ = fmt::format("{} (keyring, line {})", grant.name, grant.line);
  rights.grant_ = grant;
  return rights;
}

Rights Rights::all(std::string whose, std::string party) {
  Rights rights;
  rights.extent_ = Extent::all;
  rights.whose_ = std::move(whose);
  rights.party_ = std::move(party);
  return rights;
}

Run Rights::run() const noexcept {
  if (extent_ == Extent::line) return grant_->run;
  return extent_ == Extent::all ? Run::any : Run::none;
}

bool Rights::is_same(const Rights& other) const noexcept {
  if (extent_ != other.extent_) return false;
  if (extent_ == Extent::line) return is_same_for_code(*grant_, *other.grant_);
  return extent_ == Extent::all && party_ == other.party_;
}

Status Rights::check_name(const Names Grant::* names, std::string_view field, std::string_view kind,
                          std::string_view name) const {
  if (extent_ == Extent::all) return {};
  if (extent_ == Extent::none)
    return fail(TC_ERR_DENIED, "the {} '{}' is asked for by {}, who may do nothing", kind, name, whose_);
  if (((*grant_).*names).contains(name)) return {};
  const auto& patterns = ((*grant_).*names).patterns();
  return fail(TC_ERR_DENIED, "{}: {}={} does not allow the {} '{}'", line_of(*grant_), field,
              patterns.empty() ? "none" : fmt::format("{}", fmt::join(patterns, ",")), kind, name);
}

Status Rights::may_read(std::string_view data) const {
  if (grant() != nullptr && grant()->write.contains(data)) return {};
  return check_name(&Grant::read, "read", "data", data);
}

Status Rights::may_write(std::string_view data) const { return check_name(&Grant::write, "write", "data", data); }

Status Rights::may_use_library(std::string_view library) const {
  return check_name(&Grant::libraries, "libs", "library", library);
}

Status Rights::may_export(std::string_view symbol) const {
  return check_name(&Grant::exports, "exports", "symbol", symbol);
}

Status CodeRights::may_read(std::string_view data) const {
  return each(*this, [&](const Rights& rights) { return rights.may_read(data); });
}
Status CodeRights::may_write(std::string_view data) const {
  return each(*this, [&](const Rights& rights) { return rights.may_write(data); });
}
Status CodeRights::may_use_library(std::string_view library) const {
  return each(*this, [&](const Rights& rights) { return rights.may_use_library(library); });
}
Status CodeRights::may_export(std::string_view symbol) const {
  return each(*this, [&](const Rights& rights) { return rights.may_export(symbol); });
}

const CodeRights& SharedRights::nothing() noexcept {
  static const CodeRights nothing;
  return nothing;
}

Status check_keyring(const Rules& rules) {
  if (!rules.keyring_error) return {};
  return fail(TC_ERR_DENIED, "no key is trusted, because the keyring cannot be read: {}", rules.keyring_error->message);
}

Result<Rights> rights_of(const Rules& rules, const Peer& peer, Time now) {
  const auto* const grant = peer.key ? rules.keyring.find(*peer.key) : nullptr;
  if (grant != nullptr) TC_CHECK(check_in_force(*grant, now));
  if (peer.same_user) {
    auto user = fmt::format("user {} of this host", ::geteuid());
    return Rights::all(user, user);
  }
  if (peer.on_trusted_network) return Rights::all(fmt::format("{}, on a trusted network", peer.text), peer.host);
  if (!peer.key) return without_key(peer);
  TC_CHECK(check_keyring(rules));
  if (grant != nullptr) TC_CHECK(check_host(*grant, peer));
  const auto key = peer.key->text();
  if (peer.key == rules.own_key) return Rights::all(fmt::format("{}, with this node's own key", peer.text), key);
  if (std::ranges::find(rules.vouched, *peer.key) != rules.vouched.end())
    return Rights::all(fmt::format("{}, for which the launcher vouches", peer.text), key);
  if (grant != nullptr) return Rights::by_line(*grant);
  if (rules.trust_any) return Rights::all(fmt::format("{}, as everybody (trust=any)", peer.text), key);
  return stranger(rules, *peer.key, peer.is_key_temporary);
}

Status check_signature(const Grant& author, const CodeSignature& signature, const Bundle& bundle, Time now) {
  TC_CHECK(check_in_force(author, now));
  if (author.run == Run::none) return fail(TC_ERR_DENIED, "{}: run=none", line_of(author));
  if (is_valid(signature, bundle)) return {};
  return fail(TC_ERR_DENIED, "{}: the signature is wrong: it is not one of this code", line_of(author));
}

Result<CodeRights> rights_of_code(const Rules& rules, const Rights& peer, const wire::SharedChain& chain,
                                  const Bundle& bundle, bool has_cells, Time now) {
  CodeRights code{.peer = peer, .chain = chain_onwards(peer, chain)};
  TC_CHECK(check_principal(peer, bundle.manifest(), has_cells, now));
  const Rights* signed_only = peer.run() == Run::signed_code ? &peer : nullptr;
  const auto principals = chain != nullptr ? chain->keys() : std::vector<wire::Chain::Key>();
  code.behalf.reserve(principals.size());
  for (const auto& key : principals) {
    TC_ASSIGN(auto rights, rights_on_behalf(rules, peer, PublicKey{key}, now));
    if (rights.is_all()) continue;
    if (auto may = check_principal(rights, bundle.manifest(), has_cells, now); !may)
      return context(fmt::format("{} calls on behalf of {}", peer.whose(), rights.whose()), std::move(may).error());
    code.behalf.push_back(std::move(rights));
    if (code.behalf.back().run() == Run::signed_code) signed_only = &code.behalf.back();
  }
  if (signed_only != nullptr) {
    TC_ASSIGN(code.author, rights_of_author(rules, signed_only->whose(), bundle, has_cells, now));
  }
  return code;
}

}  // namespace tc::trust
