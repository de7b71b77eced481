// SPDX-License-Identifier: Apache-2.0
//
// All code of which this node has a bundle, wherever it came from: registered here, loaded here, or sent by this node
// before. Finds it by content and by name, loads it, and keeps each key's share within its budget.
//
// Thread: the node's.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "node/code/code_shares.h"
#include "node/common.h"
#include "node/ifunc_uses.h"
#include "source/registry.h"
#include "source/sent_code.h"
#include "target/code_store.h"

namespace tc::target {
class Executor;
}

namespace tc::node {

// Where code comes from.
struct CodeOrigin {
  std::string host;                     // empty: this node itself
  std::optional<trust::PublicKey> key;  // of the peer that brings it
  trust::SharedRights rights;           // what the code may do here
  bool in_cell = false;                 // it runs in cells alone
};

class Codes {
 public:
  Codes(const Common& common, target::Executor& executor);

  // Opens the code store. `on_loaded` is called for code that can run now, `on_free` for code that the store is about to free.
  Status start(std::function<void(const target::Code&)> on_loaded, target::CodeStore::OnFree on_free);

  // ---- For peers

  // The bundle of that code with slices that run on `triple`, registered or loaded here. Null: there is none.
  const Bundle* runnable_on(const TargetTriple& triple, const ContentId& id) const;
  // The bundle of that code, if possible with slices for `triple`. Null: this node does not have that code.
  const Bundle* bundle_for(const TargetTriple& triple, const ContentId& id) const;
  // The code section of a frame for a peer with this triple: from `bundle`, or from what else is here of the same code.
  std::shared_ptr<const Bytes> section_for(const TargetTriple& triple, const Bundle& bundle);
  // `bundle` is about to be sent to such a peer, which may drop its code and ask for it again.
  void keep_sent(const TargetTriple& triple, const Bundle& bundle);

  // So many bytes of code were given to a peer.
  void count_sent(size_t bytes) noexcept { common_.counters.code_bytes_sent += bytes; }

  // ---- For ifuncs that run here

  // What the running `code` calls by `name`: bundled with it, else registered here, else loaded here. TC_ERR_NOT_FOUND.
  Result<const Bundle*> called_by(const target::Code& code, std::string_view name);

  // Has the application registered it here? Then each peer that may call it by name may run it.
  bool is_registered(const ContentId& id) const { return registry_.find(id) != nullptr; }
  // The same code came again: takes over the signatures that were missing here. False: none were.
  bool add_signatures(const Bundle& bundle);

  // ---- Code that can run

  // What was loaded before and is still here; else null.
  target::Code* find(const ContentId& id) const noexcept { return store_->find(id); }
  // Takes the bundle, which may run here, into the store, within the budgets of the keys that bring it. Code for cells alone
  // is held there and not linked. `object`: what another node compiled of the bundle; empty: the bundle's own slices are used.
  Result<target::Code*> load(Bundle bundle, const CodeOrigin& from, Bytes object = {});
  // What this key brought, and what it signed.
  void evict_all_of(const trust::PublicKey& key) { shares_.evict_all_of(key); }
  // The store is about to free it.
  void forget(target::Code& code);
  // What the code that is or was here has done, by name.
  std::vector<wire::IfuncReport> uses() const;
  // Counts up when a library was loaded: code that could not be linked before may be usable now.
  uint64_t libraries_loaded() const noexcept { return libraries_loaded_; }

  // ---- Its parts

  source::Registry& registry() noexcept { return registry_; }
  target::Policy& policy() noexcept { return policy_; }
  target::CodeStore& store() noexcept { return *store_; }
  const target::CodeStore& store() const noexcept { return *store_; }

 private:
  const Bundle* bundled_with(const target::Code& code, std::string_view name);

  const Common& common_;
  target::Executor& executor_;
  source::Registry registry_;
  source::SentCode sent_;
  target::Policy policy_;
  std::unique_ptr<target::CodeStore> store_;  // null until start()
  CodeShares shares_{store_};
  std::function<void(const target::Code&)> on_loaded_;
  std::map<std::string, ContentId, std::less<>> loaded_names_;  // of code that others sent: the newest of each name
  // Bundled ifuncs that running code called, by the code they came with; gone with it.
  std::unordered_map<ContentId, std::map<std::string, Bundle, std::less<>>> bundled_;
  uint64_t libraries_loaded_ = 0;
  IfuncUses uses_;
};

}  // namespace tc::node
