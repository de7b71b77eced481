// SPDX-License-Identifier: Apache-2.0
#include "target/jit/object_check.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <utility>

#include "target/jit/llvm_errors.h"

namespace tc::target::jit {

namespace {

bool runs_at_start_or_end(llvm::StringRef section) {
  for (const auto* prefix : {".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors"})
    if (section.starts_with(prefix)) return true;
  return false;
}

std::unexpected<Error> refuse_thread_local(llvm::StringRef name) {
  return fail(TC_ERR_COMPILE, "the object uses the thread-local variable {}, which injected code may not", name.str());
}

using File = llvm::object::ELF64LEFile;

void forget(File::Elf_Sym& symbol) noexcept {
  symbol.st_shndx = llvm::ELF::SHN_UNDEF;
  symbol.st_value = 0;
  symbol.st_size = 0;
  symbol.setType(llvm::ELF::STT_NOTYPE);
}

// `section`: a table of symbols in memory of ours.
llvm::Error forget_in(const File& file, const File::Elf_Shdr& section, const Variables& variables) {
  auto symbols = file.symbols(&section);
  if (!symbols) return symbols.takeError();
  auto names = file.getStringTableForSymtab(section);
  if (!names) return names.takeError();
  for (const auto& symbol : *symbols) {
    auto name = symbol.getName(*names);
    if (!name) return name.takeError();
    if (symbol.getBinding() == llvm::ELF::STB_GLOBAL && variables.contains(std::string_view(*name)))
      forget(const_cast<File::Elf_Sym&>(symbol));
  }
  return llvm::Error::success();
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

Result<Bytes> without_definitions(ByteView object, const Variables& variables) {
  constexpr const char* unreadable = "LLVM cannot read the object";
  Bytes copy(object.begin(), object.end());
  auto file = File::create(llvm::StringRef(as_text(copy)));
  if (!file) return compile_error(unreadable, file.takeError());
  auto sections = file->sections();
  if (!sections) return compile_error(unreadable, sections.takeError());
  for (const auto& section : *sections)
    if (section.sh_type == llvm::ELF::SHT_SYMTAB)
      if (auto error = forget_in(*file, section, variables)) return compile_error(unreadable, std::move(error));
  return copy;
}

}  // namespace tc::target::jit
