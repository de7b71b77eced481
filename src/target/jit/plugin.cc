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
        baseline_(host_, Effort::baseline),
        tuned_(host_, Effort::tuned),
        linker_(options, std::move(memory)) {}

  Result<Bytes> compile(ByteView bitcode, Effort effort, const std::string& label) override {
    return (effort == Effort::baseline ? baseline_ : tuned_).compile(bitcode, label);
  }

  Result<std::unique_ptr<LinkedCode>> link(ByteView object, const std::string& label, const SymbolResolver& resolve,
                                           const Variables& variables) override {
    return linker_.link(object, label, resolve, variables);
  }

  std::string fingerprint(Effort effort) const override {
    return fmt::format("recipe {} llvm {} {} cpu {} vectors {} effort {} features {}", recipe, LLVM_VERSION_STRING,
                       host_.triple, host_.cpu, host_.vector_width, effort == Effort::baseline ? "baseline" : "tuned",
                       host_.features);
  }

  Status warm_up() override { return warm_up_with(*this); }

 private:
  const Host host_;
  Compiler baseline_;
  Compiler tuned_;
  Linker linker_;
};

// The factory's caller gets no message: this one brings it.
class UnusableJit final : public Jit {
 public:
  explicit UnusableJit(Error reason) : reason_(std::move(reason)) {}

  Result<Bytes> compile(ByteView, Effort, const std::string&) override { return fail(reason_); }
  Result<std::unique_ptr<LinkedCode>> link(ByteView, const std::string&, const SymbolResolver&,
                                           const Variables&) override {
    return fail(reason_);
  }
  std::string fingerprint(Effort) const override { return "unusable"; }
  Status warm_up() override { return fail(reason_); }

 private:
  const Error reason_;
};

Result<std::unique_ptr<Jit>> try_to_make_jit(LinkerOptions options) {
  TC_ASSIGN(auto host, Host::detect());
  TC_ASSIGN(auto memory, CodeMemory::create());
  return std::make_unique<LlvmJit>(std::move(host), options, std::move(memory));
}

}  // namespace

std::unique_ptr<Jit> make_jit(LinkerOptions options) {
  auto jit = try_to_make_jit(options);
  if (jit) return std::move(*jit);
  return std::make_unique<UnusableJit>(std::move(jit).error());
}

}  // namespace tc::target::jit
