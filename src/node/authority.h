// SPDX-License-Identifier: Apache-2.0
//
// The rights of peers and of code on this node: its own key, the keyring, and the keys that the launcher vouches for, applied
// to the peers of the transport (trust/permission.h has the rules).
//
// Thread: the node's. reload() is for any thread.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "node/first_contacts.h"
#include "node/rates.h"
#include "node/refusals.h"
#include "node/use_recorder.h"
#include "trust/key_pair.h"
#include "trust/permission.h"

namespace spdlog {
class logger;
}

namespace tc::transport {
struct Origin;
}

namespace tc::node {

struct Config;
struct Identity;

// Why we connect to somebody.
struct Expectation {
  // The connection is for a call of our own. False: it is for an answer, so the node there must be known, and is not remembered.
  bool may_meet = true;
  // The caller's key, which may be unknown: the answer is to a call on its behalf.
  std::optional<trust::PublicKey> caller{};
};

class Authority {
 public:
  Authority(const Config& config, const Identity& self, spdlog::logger& log);

  // ---- While the node starts

  // Reads the keyring, and says in the log what it means when the node is open to many. Errors name the file. Where no code
  // can run, a keyring that cannot be read is a warning, and then no key is trusted: processes of our own user need none.
  Status start();
  // The key that the options name, or the one called `default`. Null: there is none.
  Result<std::shared_ptr<const trust::KeyPair>> find_key() const;
  // The node's own key, and the keys of the cluster (Identity::cluster_keys), are known now.
  void use_keys(const trust::KeyPair* own);

  // ---- What peers may do. TC_ERR_DENIED names the rule.

  // May the peer connect, and what may it do then?
  Result<trust::Rights> rights_of(const transport::Origin& peer) const;
  // The node can run code in cells.
  void set_has_cells() noexcept { has_cells_ = true; }
  // Are there others than processes of this user who may be let in?
  bool has_grants() const noexcept { return !rules_.keyring.grants().empty(); }
  // Does a line of the keyring say in=cell?
  bool names_cells() const noexcept;
  // May it run this code on behalf of those in `chain`?
  Result<trust::SharedRights> rights_of_code(const trust::Rights& peer, const wire::SharedChain& chain,
                                             const Bundle& bundle) const;
  // Are these what code may do by the keyring of now?
  bool are_current(const trust::CodeRights& rights) const noexcept {
    return rights.reading == 0 || rights.reading == readings_ || rights.is_all();
  }
  // We connected to `address`, and this peer answered: is it the node that we meant? A key that was never seen there will do,
  // unless the options or `expected` say otherwise.
  Status is_expected(std::string_view address, const transport::Origin& peer, const Expectation& expected = {});
  // The peer there has let us in. Its key is remembered if none is yet: from now on, no other key is accepted there.
  void remember(std::string_view address, const transport::Origin& peer);
  // Keys that were remembered while another process of this user remembered others for the same addresses: is_expected()
  // is to be asked again.
  std::vector<trust::PublicKey> take_conflicts() { return contacts_->take_conflicts(); }
  // A peer says that it listens at `address`. May calls for that address go to it? Only if it proves a key that belongs
  // there: our own, one that the launcher vouches for, that of a line with at=, or the one that was remembered for that
  // address. A line of the keyring alone is not enough. Processes of our own user and peers on a trusted network may.
  bool may_stand_for(std::string_view address, const transport::Origin& peer) const;
  // TC_ERR_DENIED: a line of the keyring has at= with this address, and its key is another one than the peer's.
  Status may_answer_at(std::string_view address, const transport::Origin& peer) const;
  // Is the node at `address` known here: of the cluster, named by at= in the keyring, or remembered?
  bool is_known(std::string_view address) const;
  // Null: a peer with these rights may send as much as it wants.
  std::shared_ptr<Rate> rate_of(const trust::Rights& peer);
  // A peer with these rights has a link, or code with them was let run: if they come from a line of the keyring, the file
  // last-uses says so soon. Not where no code runs.
  void record_use(const trust::Rights& whose);
  // Is it time to record all links that are open? Once a minute.
  bool is_use_due();
  // One line for the operator; a peer that makes many at a time gets but some.
  void log_denial(std::string_view whose, const Error& why);
  // Is its key expired or revoked? Such a peer is not even called.
  Status is_valid(const transport::Origin& peer) const;

  // ---- What changes

  // Reads the keyring anew. Any thread; the node's takes it over with its next housekeeping. With an error the keyring
  // stays as it is; the log says so.
  Status reload();
  // Another keyring was read, a line of it has expired, or take_conflicts() has some: what peers may do is to be looked at
  // again.
  bool has_changed() const noexcept;
  // Takes over what has changed, and logs it. Returns the keys that were revoked with it, and those whose line is gone.
  std::vector<trust::PublicKey> take_change();
  // When a line expires next; UINT64_MAX: none will.
  uint64_t next_change_ns() const noexcept { return next_expiry_ns_; }

 private:
  bool runs_code() const noexcept;
  Result<trust::Keyring> read_keyring() const;
  Status may_meet(std::string_view address, const transport::Origin& peer, const trust::Grant* grant) const;
  // The line that says its key answers there; null: there is none.
  const trust::Grant* answers_at(std::string_view address, const trust::PublicKey& key) const noexcept;
  const trust::PublicKey* vouched_for(std::string_view address) const noexcept;
  bool is_own(const trust::PublicKey& key) const noexcept { return rules_.own_key == key; }
  bool is_vouched(const trust::PublicKey& key) const noexcept;
  void find_next_expiry() noexcept;
  void warn_of_openness() const;

  const Config& config_;
  const Identity& self_;
  spdlog::logger& log_;
  trust::Rules rules_;
  std::filesystem::path keyring_file_;       // empty: there is none
  std::filesystem::path known_nodes_;        // empty: there is no place for it
  std::unique_ptr<FirstContacts> contacts_;  // from start() on
  bool has_cells_ = false;
  uint64_t next_expiry_ns_ = UINT64_MAX;
  uint64_t readings_ = 1;              // of the keyring
  std::unique_ptr<UseRecorder> uses_;  // null: uses are not recorded
  uint64_t next_use_ns_ = 0;
  Rates rates_;
  Refusals denials_;

  mutable std::mutex mutex_;
  std::optional<trust::Keyring> reloaded_;  // not taken over yet
  std::atomic<bool> is_reloaded_{false};
};

}  // namespace tc::node
