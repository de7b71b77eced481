// SPDX-License-Identifier: Apache-2.0
#include "target/jit/variables.h"

#include <llvm/Object/ELFObjectFile.h>

#include <utility>

#include "target/jit/llvm_error.h"

namespace tc::target::jit {

namespace {

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
