// SPDX-License-Identifier: Apache-2.0
#include "target/jit/graph_check.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include "target/jit/llvm_error.h"

namespace tc::target::jit {

namespace {

using llvm::StringRef;

bool runs_at_start_or_end(StringRef section) {
  for (const auto* prefix : {".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"})
    if (section.starts_with(prefix)) return true;
  return false;
}

std::unexpected<Error> refuse_thread_local(StringRef name) {
  return fail(TC_ERR_COMPILE, "the object uses the thread-local variable {}, which injected code may not", name.str());
}

}  // namespace

Status check_graph(llvm::jitlink::LinkGraph& graph, const llvm::Triple& host) {
  const auto& triple = graph.getTargetTriple();
  if (triple.getArch() != host.getArch())
    return fail(TC_ERR_COMPILE, "the object is for {} when this node is {}", triple.getArchName().str(),
                host.getArchName().str());
  for (auto& section : graph.sections())
    if (!section.blocks().empty() && runs_at_start_or_end(section.getName()))
      return fail(TC_ERR_COMPILE, "the object has static constructors or destructors ({}), which a node never runs",
                  section.getName().str());
  return {};
}

Status check_symbols(llvm::MemoryBufferRef object) {
  auto file = llvm::object::ObjectFile::createELFObjectFile(object);
  if (!file) return compile_error("LLVM cannot read the object", file.takeError());
  const auto* elf = llvm::cast<llvm::object::ELFObjectFileBase>(file->get());
  for (const auto& symbol : elf->symbols()) {
    if (symbol.getELFType() != llvm::ELF::STT_TLS) continue;
    auto name = symbol.getName();
    if (name) return refuse_thread_local(*name);
    llvm::consumeError(name.takeError());
    return refuse_thread_local("without a name");
  }
  return {};
}

}  // namespace tc::target::jit
