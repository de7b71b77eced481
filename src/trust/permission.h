// SPDX-License-Identifier: Apache-2.0
//
// What a peer may do, and what code of an author may do that a peer sends. The same answers for a running node and for
// `ifunc trust explain`. Every denial names the rule: the line of the keyring or the option of the node.
//
//   who the peer is                       may it connect?          which code may it run?
//   our own user on this host             yes                      any
//   on a network that is trusted          yes                      any
//   has this node's own key               yes                      any
//   vouched for by the launcher           yes                      any
//   in the keyring                        from its hosts, in time  as its line says: run=any|signed|none
//   anybody else                          with trust=any           any
//
// A key that is revoked or expired may nothing, whatever else it is. Code that runs because it is signed may do what both
// the peer that sends it and the key that signed it may do.
//
// Thread: any; plain values.
#pragma once

#include "trust/keyring.h"
#include "wire/bundle.h"

namespace tc::trust {

// A peer, as far as it has proved who it is.
struct Peer {
  std::string text;  // for messages: "10.0.0.7:41234"
  std::string host;  // numeric
  bool same_user = false;
  bool on_trusted_network = false;
  std::optional<PublicKey> key;  // proved by the handshake
};

// What a node goes by.
struct Rules {
  bool trust_any = false;  // trust=any
  std::optional<PublicKey> own_key;
  std::vector<PublicKey> vouched;  // by the launcher
  Keyring keyring;
};

// What one principal, a peer or an author, may do: everything, or what its line says.
class Rights {
 public:
  static Rights everything(std::string why) { return Rights(std::move(why)); }
  static Rights by_line(const Grant& grant);

  // "user 1000 of this host", "ana (keyring, line 3)"; for messages.
  const std::string& whose() const noexcept { return whose_; }
  // Null: everything.
  const Grant* grant() const noexcept { return grant_ ? &*grant_ : nullptr; }
  Run run() const noexcept { return grant_ ? grant_->run : Run::any; }

  // TC_ERR_DENIED, with the rule.
  Status may_read(std::string_view data) const;
  Status may_write(std::string_view data) const;
  Status may_use_library(std::string_view library) const;
  Status may_export(std::string_view symbol) const;

 private:
  explicit Rights(std::string whose) : whose_(std::move(whose)) {}
  std::string whose_;
  std::optional<Grant> grant_;
};

// May the peer connect, and what may it do then? TC_ERR_DENIED with the rule, and what its operator can do.
Result<Rights> rights_of(const Rules& rules, const Peer& peer, Time now);

// What code may do that runs for a peer: what the peer may and, for code that runs because of a signature, also its
// author.
struct CodeRights {
  Rights peer;
  std::optional<Rights> author;

  Status may_read(std::string_view data) const;
  Status may_write(std::string_view data) const;
  Status may_use_library(std::string_view library) const;
  Status may_export(std::string_view symbol) const;
};

// Does that signature let code run, as far as its key's line goes? It must be in force, not run=none, and the signature be
// one of this code. TC_ERR_DENIED with the rule.
Status check_signature(const Grant& author, const CodeSignature& signature, const Bundle& bundle, Time now);

// May the peer run this code? Checks signatures if that depends on them, and then also what the manifest asks for:
// libraries, exports. `has_cells`: the node could run it in a cell. TC_ERR_DENIED with the rule.
Result<CodeRights> rights_of_code(const Rules& rules, const Rights& peer, const Bundle& bundle, bool has_cells,
                                  Time now);

}  // namespace tc::trust
