// SPDX-License-Identifier: Apache-2.0
#include "target/jit/without_files.h"

#include <llvm/MC/MCParser/MCAsmParser.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/VirtualFileSystem.h>

namespace tc::target::jit {

namespace {

// LLVM gives each assembler the file system of the process, and then asks the target for the rest of it: here.
llvm::MCTargetAsmParser* make_parser(const llvm::MCSubtargetInfo& cpu, llvm::MCAsmParser& assembler,
                                     const llvm::MCInstrInfo& instructions, const llvm::MCTargetOptions& options) {
  assembler.getSourceManager().setVirtualFileSystem(llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>());
  std::string error;
  const auto* const target = llvm::TargetRegistry::lookupTarget(cpu.getTargetTriple(), error);
  return target != nullptr ? target->createMCAsmParser(cpu, assembler, instructions, options) : nullptr;
}

}  // namespace

llvm::Target without_files(const llvm::Target& target) {
  llvm::Target copy = target;
  if (target.hasMCAsmParser()) llvm::TargetRegistry::RegisterMCAsmParser(copy, make_parser);
  return copy;
}

}  // namespace tc::target::jit
