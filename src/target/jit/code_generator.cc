// SPDX-License-Identifier: Apache-2.0
#include "target/jit/code_generator.h"

namespace tc::target::jit {

Result<std::unique_ptr<CodeGenerator>> CodeGenerator::create(llvm::TargetMachine& machine,
                                                             llvm::CodeGenFileType output) {
  std::unique_ptr<CodeGenerator> generator(new CodeGenerator);
  // Modules are verified before they come here, once, with a message; the pass manager's own check aborts.
  constexpr bool skip_verifier = true;
  if (machine.addPassesToEmitFile(generator->passes_, generator->stream_, nullptr, output, skip_verifier))
    return fail(TC_ERR_UNSUPPORTED, "LLVM cannot write {} for {}",
                output == llvm::CodeGenFileType::ObjectFile ? "object files" : "assembly",
                machine.getTargetTriple().str());
  return generator;
}

Bytes CodeGenerator::run(llvm::Module& module) {
  object_.clear();
  passes_.run(module);
  const auto view = as_bytes({object_.data(), object_.size()});
  return Bytes(view.begin(), view.end());
}

}  // namespace tc::target::jit
