// SPDX-License-Identifier: Apache-2.0
//
// The code of a bundle's payload functions (payload_get_max_size, payload_init), which run at the source: loaded into this
// process with the loader that targets use. The source trusts its own bundles: libraries they declare are opened without
// asking a policy.
//
// Thread: one at a time; symbol() any.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "target/jit_host.h"
#include "target/loader.h"
#include "wire/bundle.h"

namespace tc::target {

class PayloadCode {
 public:
  // Finds the slice with role `source` for this host. TC_ERR_NO_SLICE, or the loader's errors.
  static Result<std::unique_ptr<PayloadCode>> load(const Bundle& bundle);
  // The address of an entry point by its name in slices (wire/abi_names.h), null where the bundle has none.
  void* symbol(std::string_view name) const noexcept;

 private:
  // Libraries that a bundle declares, open as long as this lives. The source's own code may use all of its process.
  class Libraries {
   public:
    Libraries() = default;
    Libraries(const Libraries&) = delete;
    Libraries& operator=(const Libraries&) = delete;
    ~Libraries();

    Status open(const std::vector<std::string>& names);
    Result<void*> resolve(const std::string& symbol) const;

   private:
    std::vector<void*> handles_;
  };

  explicit PayloadCode(std::unique_ptr<memory::Arena> arena) : arena_(std::move(arena)) {}
  Status load_for_host(const Bundle& bundle);
  Status load_object(const Bundle& bundle, size_t slice, Arch arch);
  Status load_bitcode(const Bundle& bundle, size_t slice);
  SymbolResolver resolver() const {
    return [this](const std::string& symbol) { return libraries_.resolve(symbol); };
  }

  Libraries libraries_;
  std::string missing_;  // why a library could not be opened
  std::unique_ptr<memory::Arena> arena_;
  LoadedImage image_;
  JitHost jit_{""};
  JitCode jitted_;
  std::map<std::string, void*, std::less<>> symbols_;
};

}  // namespace tc::target
