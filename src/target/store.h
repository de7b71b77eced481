// SPDX-License-Identifier: Apache-2.0
//
// The one CodeStore. Its face is code_store.h; only its own files include this.
//
//   code_store.cc     what is held, what it costs, what must go
//   store_link.cc     which slice runs, and linking it
//   store_library.cc  libraries: exports, and binding their users anew
//   store_retire.cc   code that was replaced, until its last call has ended
#pragma once

#include <unordered_map>

#include "target/eviction_queue.h"
#include "target/tuner.h"

namespace tc::target {

class Store final : public CodeStore {
 public:
  Store(CodeStoreOptions options, Policy& policy, OnEvict on_evict, std::unique_ptr<memory::Arena> arena,
        std::unique_ptr<DiskCache> cache)
      : options_(std::move(options)),
        policy_(policy),
        on_evict_(std::move(on_evict)),
        arena_(std::move(arena)),
        jit_(options_.jit_plugin),
        builder_(jit_, std::move(cache), options_.warn),
        tuner_(builder_, policy_, host_) {
    codes_.max_load_factor(sparse);
  }

  Code* find(const ContentId& id) noexcept override;
  Result<Code*> load(Bundle bundle, const Sender& from, Bytes object) override;
  void each(FunctionRef<void(const Code&)> show) const override;
  bool lacks_object(const Bundle& bundle) const noexcept override;
  void evict(const ContentId& id) override;
  void housekeeping() noexcept override;
  bool wait_until_tuned(uint64_t deadline_ms) override;
  Status warm_up() override;
  CodeStoreStats stats() const noexcept override;

 private:
  // Looking for what is not there then mostly ends at an empty bucket, and not at other codes' records, long out of the
  // CPU's caches.
  static constexpr float sparse = 0.25F;

  // Code that was linked and is not yet what runs.
  struct Linked {
    CodeMemory memory;
    EntryPoint entry = nullptr;
    Tier tier = Tier::none;
    Exports exports;       // of a library
    Variables variables;   // as StoredCode::variables
    bool counted = false;  // as Code::counted
  };

  // code_store.cc: holding
  Result<Code*> load_new(Bundle bundle, const Sender& from, Bytes object);
  Code* add_slices(StoredCode& code, const Bundle& bundle);
  Status make_room(const StoredCode& code);
  void tune_later(StoredCode& code);
  void count(StoredCode& code) noexcept;
  void free(StoredCode& code);

  // store_link.cc: from slices to callable code
  Result<Linked> link(const StoredCode& code);
  Result<Linked> link_slice(const StoredCode& code);
  std::string about_libraries(const StoredCode& code);
  Status no_slice(const Bundle& bundle) const;
  Result<Linked> link_object(const StoredCode& code, size_t slice);
  Result<Linked> link_compiled(const StoredCode& code);
  Status link_image(const StoredCode& code, const ElfImage& image, Linked& linked);
  Result<Linked> link_bitcode(const StoredCode& code, size_t slice);
  Result<Linked> link_library_bitcode(const StoredCode& code, size_t slice);
  SymbolResolver resolver_for(const StoredCode& code) const;

  // store_retire.cc: what was replaced
  void adopt();
  void put_aside(StoredCode& code, CodeMemory memory);
  void put_aside_all(StoredCode& code);
  void wait_for_leaving(CodeMemory memory);
  void retire();
  void free_left();

  // store_library.cc: libraries and their users
  Status check_exports(const std::vector<std::string>& symbols, const Sender& from) const;
  Status bind_library(StoredCode& library, const Sender& from);
  Status link_users(const std::vector<StoredCode*>& users, std::vector<Linked>& linked);
  StoredCode* exporting(const std::string& name);
  std::vector<StoredCode*> users_of(const Exports& one, const Exports& other);
  void take_over(StoredCode& code, Linked linked);
  void withdraw(StoredCode& library);

  const CodeStoreOptions options_;
  Policy& policy_;
  const OnEvict on_evict_;
  const TargetTriple host_ = options_.triple;
  const std::unique_ptr<memory::Arena> arena_;
  JitHost jit_;
  BitcodeBuilder builder_;
  std::unordered_map<ContentId, std::unique_ptr<StoredCode>> codes_;
  EvictionQueue queue_;
  std::vector<StoredCode*> retiring_;
  std::vector<CodeMemory> outdated_, leaving_;  // with options_.executions: not waited for yet, and waited for
  StoredCode* last_loaded_ = nullptr;
  CodeStoreStats stats_;
  Tuner tuner_;  // last, so that its thread ends before what it uses does
};

}  // namespace tc::target
