// SPDX-License-Identifier: Apache-2.0
#include "toolchain/link.h"

#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>

#include "base/file.h"
#include "toolchain/llvm_tools.h"
#include "toolchain/process.h"
#include "wire/bundle.h"
#include "wire/object_format.h"

namespace tc::toolchain {

namespace {

// Sections in the order in which they shall lie: the dynamic table last in its half, where it can be cut. What is
// neither code nor data of the author's goes.
std::string layout() {
  return fmt::format(R"(PHDRS
{{
  text PT_LOAD FLAGS(5);
  data PT_LOAD FLAGS(6);
  dynamic PT_DYNAMIC FLAGS(4);
}}
SECTIONS
{{
  . = 0;
  .dynsym : {{ *(.dynsym) }} :text
  .hash : {{ *(.hash) }} :text
  .dynstr : {{ *(.dynstr) }} :text
  .rela.dyn : {{ *(.rela.dyn) }} :text
  .rela.plt : {{ *(.rela.plt) }} :text
  .rodata : {{ *(.rodata .rodata.*) }} :text
  .text : {{ *(.text .text.*) }} :text
  .plt : {{ *(.plt) *(.plt.*) *(.iplt) }} :text
  .dynamic : {{ *(.dynamic) }} :text :dynamic
  . = {:#x};
  .data.rel.ro : {{ *(.data.rel.ro .data.rel.ro.*) }} :data
  .got : {{ *(.got) *(.got.plt) }} :data
  .data : {{ *(.data .data.*) }} :data
  .bss : {{ *(.bss .bss.*) *(COMMON) }} :data
  /DISCARD/ : {{ *(.comment*) *(.note*) *(.eh_frame*) *(.deplibs*) *(.llvm*) *(.riscv.attributes) *(.ARM.attributes) }}
}}
)",
                     object_format::image_half);
}

const char* emulation(Arch arch) {
  switch (arch) {
    case Arch::x86_64: return "elf_x86_64";
    case Arch::aarch64: return "aarch64linux";
    case Arch::riscv64: return "elf64lriscv";
    default: return nullptr;
  }
}

}  // namespace

Result<ObjectSlice> link_object(ByteView object, const TargetTriple& triple, const std::string& label) {
  const char* const machine = emulation(triple.arch);
  if (!machine) return fail(TC_ERR_UNSUPPORTED, "{}: no linker emulation is known for {}", label, triple.text);
  TC_ASSIGN(const auto lld, find_lld());
  TC_ASSIGN(const auto scratch, TemporaryDirectory::create());
  const auto input = scratch.path() / "ifunc.o";
  const auto script = scratch.path() / "ifunc.lds";
  const auto output = scratch.path() / "ifunc.so";
  TC_CHECK(write_file_atomically(input, object));
  TC_CHECK(write_file_atomically(script, as_bytes(layout())));
  const std::vector<std::string> options = {"-m",
                                            machine,
                                            "-shared",
                                            "-T",
                                            script.string(),
                                            "-o",
                                            output.string(),
                                            "-O2",
                                            "-Bsymbolic",
                                            "--gc-sections",
                                            "--hash-style=sysv",
                                            "--build-id=none",
                                            "--no-eh-frame-hdr",
                                            "--strip-all",
                                            "-z",
                                            "text",
                                            "-z",
                                            "now",
                                            "-z",
                                            "norelro",
                                            "-z",
                                            "nognustack",
                                            "-z",
                                            "rodynamic",
                                            "-z",
                                            "noseparate-code",
                                            "-z",
                                            fmt::format("max-page-size={}", object_format::largest_alignment),
                                            input.string()};
  auto command = lld.command;
  command.insert(command.end(), options.begin(), options.end());
  TC_ASSIGN(const int status, run(command));
  if (status != 0)
    return fail(TC_ERR_COMPILE, "{}: does not link for {} (the linker's words are above)", label, triple.text);
  TC_ASSIGN(const auto linked, read_file(output, BundleLimits::slice_bytes + 2 * object_format::image_half));
  return compact_shared_object(linked, label);
}

std::string relocation_name(uint16_t machine, uint32_t type) {
  return llvm::object::getELFRelocationTypeName(machine, type).str();
}

Result<std::vector<std::string>> undefined_in_object(ByteView object, const std::string& label) {
  auto file = llvm::object::ELF64LEObjectFile::create(llvm::MemoryBufferRef(llvm::StringRef(as_text(object)), label));
  if (!file) return fail(TC_ERR_INTERNAL, "{}: {}", label, llvm::toString(file.takeError()));
  std::vector<std::string> undefined;
  for (const auto& symbol : file->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      if (!flags) llvm::consumeError(flags.takeError());
      if (!name) llvm::consumeError(name.takeError());
      continue;
    }
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined) || name->empty() || *name == "_GLOBAL_OFFSET_TABLE_")
      continue;
    undefined.push_back(name->str());
  }
  std::sort(undefined.begin(), undefined.end());
  return undefined;
}

}  // namespace tc::toolchain
