// SPDX-License-Identifier: Apache-2.0
//
// What a peer may do, and what code of an author may do that a peer sends. The same answers for a running node and for
// `ifunc trust explain`. Every denial names the rule: the line of the keyring or the option of the node.
//
//   who the peer is                       may it connect?          which code may it run?
//   our own user on this host             yes                      any
//   on a network that is trusted          yes                      any
//   has this node's own key               from the hosts of its    any
//   vouched for by the launcher           line, if it has one      any
//   in the keyring                        from its hosts, in time  as its line says: run=any|signed|none
//   anybody else                          with trust=any           any
//
// A key that is revoked or expired may do nothing, whatever else is true of it. Where the keyring could not be read, no key
// may do anything: it might be revoked there. Code that runs because it is signed may do
// what both the peer that sends it and the key that signed it may do. A call that a peer makes on behalf of others
// (wire/chain.h) may do what the peer and each of the others may do: whoever leaves one out gains nothing but what is its
// own, so that the names need no proof.
//
// Thread: any; plain values.
#pragma once

#include "trust/keyring.h"
#include "wire/bundle.h"
#include "wire/chain.h"

namespace tc::trust {

// A peer, as far as it has proved who it is.
struct Peer {
  std::string text;  // for messages: "10.0.0.7:41234"
  std::string host;  // numeric
  bool same_user = false;
  bool on_trusted_network = false;
  std::optional<PublicKey> key;  // proved by the handshake
  bool is_key_temporary = false;
};

// What a node decides by.
struct Rules {
  bool trust_any = false;  // trust=any
  std::optional<PublicKey> own_key;
  std::vector<PublicKey> vouched;  // by the launcher
  Keyring keyring;
  std::optional<Error> keyring_error{};  // why it could not be read, and is empty
};

// TC_ERR_DENIED where the keyring could not be read: nobody is known by a key then.
Status check_keyring(const Rules& rules);

// What one principal, a peer or an author, may do: nothing unless something else is said.
class Rights {
 public:
  Rights() = default;
  static Rights none() { return {}; }
  static Rights all(std::string whose);
  static Rights by_line(const Grant& grant);

  // "user 1000 of this host", "ana (keyring, line 3)"; for messages.
  const std::string& whose() const noexcept { return whose_; }
  bool is_all() const noexcept { return extent_ == Extent::all; }
  // The line of the keyring that they come from; null: from none.
  const Grant* grant() const noexcept { return grant_ ? &*grant_ : nullptr; }
  Run run() const noexcept;

  // TC_ERR_DENIED, with the rule.
  Status may_read(std::string_view data) const;
  Status may_write(std::string_view data) const;
  Status may_use_library(std::string_view library) const;
  Status may_export(std::string_view symbol) const;

 private:
  enum class Extent : uint8_t { none, line, all };
  Status check_name(const Names Grant::* names, std::string_view field, std::string_view kind,
                    std::string_view name) const;

  Extent extent_ = Extent::none;
  std::string whose_ = "nobody";
  std::optional<Grant> grant_;
};

// May the peer connect, and what may it do then? TC_ERR_DENIED with the rule, and what its operator can do.
Result<Rights> rights_of(const Rules& rules, const Peer& peer, Time now);

// What code may do that runs for a peer: what the peer may, what each of those may on whose behalf it calls and, for code
// that runs because of a signature, what its author may. Nothing unless something else is said.
struct CodeRights {
  static CodeRights all(std::string whose) { return {.peer = Rights::all(std::move(whose))}; }

  Rights peer{};
  std::vector<Rights> behalf{};    // without those that may do everything here
  std::optional<Rights> author{};  // none: the code may run whoever made it
  // What the code sends to other nodes is sent on behalf of these: those that the peer named, and the peer itself unless it
  // may do everything here.
  wire::SharedChain chain{};

  bool is_all() const noexcept { return peer.is_all() && behalf.empty() && !author; }
  Status may_read(std::string_view data) const;
  Status may_write(std::string_view data) const;
  Status may_use_library(std::string_view library) const;
  Status may_export(std::string_view symbol) const;
};

// The same, for all calls that have it. Unless something else is said: nothing.
class SharedRights {
 public:
  SharedRights() = default;
  explicit SharedRights(CodeRights rights) : rights_(std::make_shared<const CodeRights>(std::move(rights))) {}

  const CodeRights& operator*() const noexcept { return rights_ != nullptr ? *rights_ : nothing(); }
  const CodeRights* operator->() const noexcept { return &**this; }

 private:
  static const CodeRights& nothing() noexcept;
  std::shared_ptr<const CodeRights> rights_;
};

// Does that signature let code run, as far as its key's line goes? It must be in force, not run=none, and the signature be
// one of this code. TC_ERR_DENIED with the rule.
Status check_signature(const Grant& author, const CodeSignature& signature, const Bundle& bundle, Time now);

// May the peer run this code on behalf of those in `chain`? Checks signatures if that depends on them, and then also what the
// manifest asks for: libraries, exports. `has_cells`: the node could run it in a cell. TC_ERR_DENIED with the rule.
Result<CodeRights> rights_of_code(const Rules& rules, const Rights& peer, const wire::SharedChain& chain,
                                  const Bundle& bundle, bool has_cells, Time now);

}  // namespace tc::trust
