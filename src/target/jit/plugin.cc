// SPDX-License-Identifier: Apache-2.0
#include "target/jit/plugin.h"

#include <llvm/Config/llvm-config.h>

#include "target/jit/compiler.h"
#include "target/jit/host.h"
#include "target/jit/warm_up.h"

namespace tc::target::jit {

namespace {

// Raise it when the same bitcode would give another object with the same LLVM: it makes cached objects miss.
constexpr int recipe = 1;

class LlvmJit final : public Jit {
 public:
  LlvmJit(Host host, LinkerOptions options, std::shared_ptr<CodeMemory> memory)
      : host_(std::move(host)),
        quick_(host_, Effort::quick),
        tuned_(host_, Effort::tuned),
        linker_(options, std::move(memory)) {}

  Result<Bytes> compile(ByteView bitcode, Effort effort, const std::string& label) override {
    return (effort == Effort::quick ? quick_ : tuned_).compile(bitcode, label);
  }

  Result<std::unique_ptr<LinkedCode>> link(ByteView object, const std::string& label,
                                           const SymbolResolver& resolve) override {
    return linker_.link(object, label, resolve);
  }

  std::string fingerprint(Effort effort) const override {
    return fmt::format("recipe {} llvm {} {} cpu {} vectors {} effort {} features {}", recipe, LLVM_VERSION_STRING,
                       host_.triple, host_.cpu, host_.vector_width, effort == Effort::quick ? "quick" : "tuned",
                       host_.features);
  }

  Status warm_up() override { return warm_up_with(*this); }

 private:
  const Host host_;
  Compiler quick_;
  Compiler tuned_;
  Linker linker_;
};

}  // namespace

Result<std::unique_ptr<Jit>> make_jit(LinkerOptions options) {
  TC_ASSIGN(auto host, Host::detect());
  TC_ASSIGN(auto memory, CodeMemory::create());
  return std::make_unique<LlvmJit>(std::move(host), options, std::move(memory));
}

}  // namespace tc::target::jit
