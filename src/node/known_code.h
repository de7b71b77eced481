// SPDX-License-Identifier: Apache-2.0
//
// The code of which this node has a bundle, wherever it came from: registered here, loaded here, or sent by this node
// before. Finds it by content and by name, for peers and for ifuncs that run here.
//
// Thread: the node's.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "node/identity.h"
#include "source/registry.h"
#include "source/sent_code.h"
#include "target/code_store.h"

namespace spdlog {
class logger;
}

namespace tc::node {

class KnownCode {
 public:
  KnownCode(const source::Registry& registry, source::SentCode& sent, const std::unique_ptr<target::CodeStore>& store,
            const Identity& self, spdlog::logger& log)
      : registry_(registry), sent_(sent), store_(store), self_(self), log_(log) {}

  // ---- For peers

  // The bundle of that code with slices that run on `triple`, registered or loaded here. Null: there is none.
  const Bundle* runnable_on(const TargetTriple& triple, const ContentId& id) const;
  // The bundle of that code, if possible with slices for `triple`. Null: this node does not have that code.
  const Bundle* bundle_for(const TargetTriple& triple, const ContentId& id) const;
  // The code section of a frame for a peer with this triple: from `bundle`, or from what else is here of the same code.
  std::shared_ptr<const Bytes> section_for(const TargetTriple& triple, const Bundle& bundle);
  // `bundle` is about to be sent to such a peer, which may drop its code and ask for it again.
  void keep_sent(const TargetTriple& triple, const Bundle& bundle);

  // ---- For ifuncs that run here

  // What the running `code` calls by `name`: bundled with it, else registered here, else loaded here. TC_ERR_NOT_FOUND.
  Result<const Bundle*> called_by(const target::Code& code, std::string_view name);

  // Has the application registered it here? Then it may run for everybody who may call it by name.
  bool is_registered(const ContentId& id) const { return registry_.find(id) != nullptr; }
  // The same code came again: takes over the signatures that were missing here. False: none were.
  bool add_signatures(const Bundle& bundle);

  // ---- What happens to loaded code

  void loaded(const target::Code& code);
  // The store is about to free it.
  void forget(const target::Code& code);
  // Counts up when a library was loaded: code that could not be linked before may be usable now.
  uint64_t libraries_loaded() const noexcept { return libraries_loaded_; }

 private:
  const Bundle* bundled_with(const target::Code& code, std::string_view name);

  const source::Registry& registry_;
  source::SentCode& sent_;
  const std::unique_ptr<target::CodeStore>& store_;  // made while the node starts
  const Identity& self_;
  spdlog::logger& log_;
  std::map<std::string, ContentId, std::less<>> loaded_names_;  // of code that others sent: the newest of each name
  // Bundled ifuncs that running code called, by the code they came with; gone with it.
  std::unordered_map<ContentId, std::map<std::string, Bundle, std::less<>>> bundled_;
  uint64_t libraries_loaded_ = 0;
};

}  // namespace tc::node
