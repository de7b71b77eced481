// SPDX-License-Identifier: Apache-2.0
//
// From the slices of a bundle to code that can be called: chooses the slice that runs on this node, and links it. Loading
// objects is loader.h, compiling bitcode bitcode_builder.h.
//
// Thread: the node's; builder() says what other threads may call.
#pragma once

#include <memory>
#include <string>

#include "target/bitcode_builder.h"
#include "target/code.h"

namespace tc::target {

class ElfImage;
struct CodeStoreOptions;

class CodeLinker {
 public:
  // Code that was linked and is not yet what runs.
  struct Linked {
    CodeMemory memory;
    EntryPoint entry = nullptr;
    Tier tier = Tier::none;
    Exports exports;           // of a library
    Variables variables;       // as Code::variables
    bool replaceable = false;  // as Code::replaceable
  };

  // `options` and `policy` must outlive the linker, and the linker all that it links. `cache` may be null. With an exported
  // arena, and a policy that is foreign, all that it links runs in another process, and never in this one.
  CodeLinker(const CodeStoreOptions& options, const Policy& policy, std::unique_ptr<memory::Arena> arena,
             std::unique_ptr<DiskCache> cache);

  // Errors are those of CodeStore::load, without the ifunc's name.
  Result<Linked> link(const Code& code);
  // TC_ERR_NO_SLICE: the bundle holds nothing that link() could take.
  Status check_has_slice(const Code& code) const;
  // As CodeStore's functions of the same name.
  bool lacks_object(const Bundle& bundle) const noexcept;
  Status warm_up();
  // As Arena::exported.
  memory::ExportedMemory exported() const noexcept { return arena_->exported(); }
  // Makes memory ready for the code that comes next.
  void prepare() noexcept { arena_->prepare(); }

  BitcodeBuilder& builder() noexcept { return builder_; }
  const BitcodeBuilder& builder() const noexcept { return builder_; }
  // How many times it did so.
  uint64_t object_loads() const noexcept { return object_loads_; }
  uint64_t baseline_compiles() const noexcept { return baseline_compiles_; }

 private:
  // What runs of a bundle on this node: an object, else what a helper compiled, else bitcode.
  struct Choice {
    enum class What : uint8_t { object, compiled, bitcode } what;
    size_t slice = 0;
  };
  Result<Choice> choose(const Code& code) const;
  Result<Linked> link_slice(const Code& code);
  Result<Linked> link_object(const Code& code, size_t slice);
  Result<Linked> link_compiled(const Code& code);
  Status link_image(const Code& code, const ElfImage& image, Linked& linked);
  Result<Linked> link_bitcode(const Code& code, size_t slice);
  Result<Linked> link_library_bitcode(const Code& code, size_t slice);
  Status no_slice(const Bundle& bundle) const;
  SymbolResolver resolver_for(const Code& code) const;

  const CodeStoreOptions& options_;
  const Policy& policy_;
  const std::unique_ptr<memory::Arena> arena_;
  JitHost jit_;
  BitcodeBuilder builder_;
  uint64_t object_loads_ = 0, baseline_compiles_ = 0;
};

}  // namespace tc::target
