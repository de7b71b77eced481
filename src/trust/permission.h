// SPDX-License-Identifier: Apache-2.0
//
// Who may do what on a node?
//
// Code comes to a node over a link, and the peer at the other end of the link is not always the one that wrote the
// code, or the one that wants it to run. Suppose that Bob's node receives an ifunc from Carol's node. Ana wrote and
// signed it. Carol forwards it, because a client of hers called it: Dave. Up to three parties stand behind this one
// call:
//
//   Carol, the peer       proved her key in the handshake. Bob's keyring has a line for this key: her rights.
//   Dave, a principal     is named by Carol in the chain of the call (wire/chain.h). Carol calls on his behalf.
//   Ana, the author       signed the code. Her rights count when the line of Carol or Dave has run=signed.
//
// Bob's node lets the code run, and lets it use a library or named data, only if every one of these parties may do so.
// This makes two attacks pointless:
//
//   - Carol cannot use Ana's rights by sending Ana's code, nor can Ana use Carol's. Neither gains a right from the
//     other.
//   - Carol can leave Dave out of the chain. Then the call has the rights that Carol has anyway. So the names in a
//     chain need no proof.
//
// If Bob's node forwards the call, its chain names Carol too, unless she may do everything here. The next node asks
// again.
//
// The rights of a peer depend on how it connects. The first row that fits decides:
//
//   who the peer is                       may it connect?          which code may it run?
//   our own user on this host             yes                      any
//   on a network that is trusted          yes                      any
//   has this node's own key               from the hosts of its    any
//   vouched for by the launcher           line, if it has one      any
//   in the keyring                        from its hosts, in time  as its line says: run=any|signed|none
//   anybody else                          with trust=any           any
//
// A revoked or expired key has no rights, whichever row fits. If the keyring cannot be read, no key has rights, because
// the file might revoke it. Every denial names its rule: the line of the keyring or the option of the node. A running
// node and `ifunc trust explain` both get their answers here.
//
// Threads: any; plain values.
#pragma once

#include "trust/keyring.h"
#include "wire/bundle.h"
#include "wire/chain.h"

namespace tc::trust {

// What a node knows about a peer after the handshake.
struct Peer {
  std::string text;  // for messages: "10.0.0.7:41234"
  std::string host;  // numeric
  bool same_user = false;
  std::string_view why_not_same_user{};  // though it has our uid: the end of a sentence about that number
  bool on_trusted_network = false;
  std::optional<PublicKey> key;  // proved by the handshake
  bool is_key_temporary = false;
};

// The options and files of a node that decide about rights.
struct Rules {
  bool trust_any = false;  // trust=any
  std::optional<PublicKey> own_key;
  std::vector<PublicKey> vouched;  // keys that the launcher vouches for
  Keyring keyring;
  std::optional<Error> keyring_error{};  // why the keyring could not be read; then it is empty
};

// TC_ERR_DENIED: the keyring could not be read, so no key is trusted.
Status check_keyring(const Rules& rules);

// The rights of one party: a peer, a principal or an author. By default it has none.
class Rights {
 public:
  Rights() = default;
  static Rights none() { return {}; }
  // `party` identifies it: its key, or what stands in the place of one. `whose` may name a connection, too.
  static Rights all(std::string whose, std::string party);
  static Rights by_line(const Grant& grant);

  // The party, for messages: "user 1000 of this host", "ana (keyring, line 3)".
  const std::string& whose() const noexcept { return whose_; }
  bool is_all() const noexcept { return extent_ == Extent::all; }
  // The line of the keyring that gives these rights. Null: they do not come from a line.
  const Grant* grant() const noexcept { return grant_ ? &*grant_ : nullptr; }
  Run run() const noexcept;
  // The same party, with the same rights for its code? Nobody is nobody else.
  bool is_same(const Rights& other) const noexcept;

  // TC_ERR_DENIED names the rule.
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
  std::string party_;  // of all rights
  std::optional<Grant> grant_;
};

// The rights of a peer that connects. TC_ERR_DENIED: it may not connect. The message names the rule, and says what the
// operators can do about it.
Result<Rights> rights_of(const Rules& rules, const Peer& peer, Time now);

// The rights of code that runs: only what all of its parties may do. By default it has none.
struct CodeRights {
  Rights peer{};
  std::vector<Rights> behalf{};    // the principals of the chain, but for those that may do everything here
  std::optional<Rights> author{};  // nothing: the code needs no signature to run
  // The chain of the calls that this code makes to other nodes. It has the principals that the peer named, and the peer
  // itself unless it may do everything here.
  wire::SharedChain chain{};
  // Which reading of the keyring they are from; 0: from none.
  uint64_t reading = 0;

  bool is_all() const noexcept { return peer.is_all() && behalf.empty() && !author; }
  // Does the line of a party say that its code runs in a cell (in=cell)?
  bool wants_cell() const noexcept;
  // Could each of the parties run any code here, in the node's process?
  bool is_trusted() const noexcept;
  // The same parties, with the same rights? Then what code of the one leaves behind may be there for code of the other.
  bool is_same(const CodeRights& other) const noexcept;
  Status may_read(std::string_view data) const;
  Status may_write(std::string_view data) const;
  Status may_use_library(std::string_view library) const;
  Status may_export(std::string_view symbol) const;
};

// CodeRights that several calls share. By default: no rights.
class SharedRights {
 public:
  SharedRights() = default;
  explicit SharedRights(CodeRights rights) : rights_(std::make_shared<const CodeRights>(std::move(rights))) {}

  const CodeRights& operator*() const noexcept { return rights_ != nullptr ? *rights_ : nothing(); }
  const CodeRights* operator->() const noexcept { return &**this; }
  // As CodeRights::is_same(), and at once for those of one decision.
  bool is_same(const SharedRights& other) const noexcept {
    return rights_ != nullptr && (rights_ == other.rights_ || rights_->is_same(*other));
  }

 private:
  static const CodeRights& nothing() noexcept;
  std::shared_ptr<const CodeRights> rights_;
};

// Checks whether a signature by `author` lets this code run. The author's line must be in force and not have run=none,
// and the signature must be one of this code. TC_ERR_DENIED names the rule.
Status check_signature(const Grant& author, const CodeSignature& signature, const Bundle& bundle, Time now);

// The rights of `bundle` when `peer` runs it on behalf of the principals in `chain`. Checks that each party may run it,
// and may use the libraries and exports of the manifest. Checks signatures only if a party has run=signed. `has_cells`:
// the node can run code in a cell. TC_ERR_DENIED names the rule.
Result<CodeRights> rights_of_code(const Rules& rules, const Rights& peer, const wire::SharedChain& chain,
                                  const Bundle& bundle, bool has_cells, Time now);

}  // namespace tc::trust
