// SPDX-License-Identifier: Apache-2.0
#include "toolchain/link.h"

#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "toolchain/tools.h"
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

using object_format::image_half;
using object_format::largest_alignment;
using object_format::Relocation;

// What lld writes and a loader of ours does not read.
constexpr int64_t harmless_tags[] = {DT_NULL,   DT_FLAGS,    DT_FLAGS_1,  DT_RELACOUNT,
                                     DT_PLTGOT, DT_GNU_HASH, DT_SYMBOLIC, DT_BIND_NOW};

bool contains(const auto& list, int64_t value) noexcept { return std::ranges::find(list, value) != std::end(list); }

struct Segment {
  Elf64_Phdr header{};
  Bytes bytes;
  uint64_t alignment = 1;  // what its sections ask for
};

struct Parts {
  Segment text, data;
  Elf64_Phdr dynamic{};
  bool has_data = false;
};

std::unexpected<Error> cannot(const std::string& label, const std::string& why) {
  return fail(TC_ERR_UNSUPPORTED,
              "{}: as machine code it needs {}, which the target's loader does not do; give "
              "--no-object to ship bitcode alone",
              label, why);
}

template <class T>
T read_at(ByteView bytes, size_t offset) {
  T value{};
  if (offset <= bytes.size() && sizeof(T) <= bytes.size() - offset)
    std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// The linker writes its page size into the segments. What the code needs is in the sections, which do not stay.
void find_alignments(ByteView elf, const Elf64_Ehdr& header, Parts& parts) {
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(elf, header.e_shoff + i * sizeof(Elf64_Shdr));
    if ((section.sh_flags & SHF_ALLOC) == 0) continue;
    auto& half = section.sh_addr >= image_half ? parts.data : parts.text;
    half.alignment = std::max(half.alignment, section.sh_addralign);
  }
}

Result<Parts> take_apart(ByteView elf, const std::string& label) {
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  Parts parts;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = read_at<Elf64_Phdr>(elf, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (segment.p_type == PT_TLS) return cannot(label, "thread-locals");
    if (segment.p_type == PT_DYNAMIC) parts.dynamic = segment;
    if (segment.p_type != PT_LOAD || segment.p_memsz == 0) continue;
    if (segment.p_offset > elf.size() || segment.p_filesz > elf.size() - segment.p_offset)
      return fail(TC_ERR_INTERNAL, "{}: the linker's output is cut short", label);
    const bool is_data = segment.p_vaddr >= image_half;
    auto& half = is_data ? parts.data : parts.text;
    parts.has_data |= is_data;
    half.header = segment;
    const auto bytes = elf.subspan(segment.p_offset, segment.p_filesz);
    half.bytes.assign(bytes.begin(), bytes.end());
  }
  find_alignments(elf, header, parts);
  for (const auto* const half : {&parts.text, &parts.data})
    if (half->alignment > largest_alignment)
      return cannot(label, fmt::format("alignment to {} bytes", half->alignment));
  if (parts.text.header.p_vaddr != 0 || parts.text.bytes.empty() || parts.dynamic.p_filesz == 0)
    return fail(TC_ERR_INTERNAL, "{}: the linker did not keep to our layout", label);
  if (parts.text.header.p_memsz >= image_half) return cannot(label, "more than 64 MiB of code");
  if (parts.has_data && parts.data.header.p_vaddr != image_half)
    return fail(TC_ERR_INTERNAL, "{}: the linker put the data half at {:#x}", label, parts.data.header.p_vaddr);
  return parts;
}

bool portable(uint16_t machine, uint32_t type) {
  const auto kind = object_format::relocation_of(object_format::arch_of_elf(machine), type);
  return kind == Relocation::relative || kind == Relocation::symbol;
}

// Reads the dynamic table, drops what no loader of ours looks at, and ends the text half behind the rest.
Result<std::vector<Elf64_Dyn>> reduce_dynamic(Parts& parts, const std::string& label) {
  std::vector<Elf64_Dyn> kept;
  const size_t at = parts.dynamic.p_vaddr;
  for (size_t i = 0; i + sizeof(Elf64_Dyn) <= parts.dynamic.p_filesz; i += sizeof(Elf64_Dyn)) {
    const auto entry = read_at<Elf64_Dyn>(parts.text.bytes, at + i);
    const auto tag = entry.d_tag;
    if (contains(object_format::table_tags, tag)) {
      kept.push_back(entry);
    } else if (object_format::is_constructor_tag(tag)) {
      return cannot(label, "static constructors or destructors");
    } else if (!contains(harmless_tags, tag)) {
      return cannot(label, fmt::format("the dynamic tag {:#x}", tag));
    }
    if (tag == DT_NULL) break;
  }
  kept.push_back({});
  if (kept.size() * sizeof(Elf64_Dyn) > parts.dynamic.p_filesz)
    return fail(TC_ERR_INTERNAL, "{}: the linker's dynamic table has no end", label);
  const size_t size = kept.size() * sizeof(Elf64_Dyn);
  if (at + parts.dynamic.p_filesz != parts.text.bytes.size())
    return fail(TC_ERR_INTERNAL, "{}: the linker did not put the dynamic table last", label);
  std::memcpy(parts.text.bytes.data() + at, kept.data(), size);
  parts.dynamic.p_filesz = parts.dynamic.p_memsz = size;
  parts.text.bytes.resize(at + size);
  parts.text.header.p_memsz = at + size;
  return kept;
}

uint64_t value_of(const std::vector<Elf64_Dyn>& dynamic, uint64_t tag) {
  for (const auto& entry : dynamic)
    if (static_cast<uint64_t>(entry.d_tag) == tag) return entry.d_un.d_val;
  return 0;
}

// "R_X86_64_TPOFF64", for messages.
std::string relocation_name(uint16_t machine, uint32_t type) {
  return llvm::object::getELFRelocationTypeName(machine, type).str();
}

Status check_relocations(const Parts& parts, const std::vector<Elf64_Dyn>& dynamic, uint16_t machine,
                         const std::string& label) {
  const std::pair<uint64_t, uint64_t> tables[] = {{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}};
  for (const auto& [where, size] : tables)
    for (uint64_t i = 0; i + sizeof(Elf64_Rela) <= value_of(dynamic, size); i += sizeof(Elf64_Rela)) {
      const auto relocation = read_at<Elf64_Rela>(parts.text.bytes, value_of(dynamic, where) + i);
      const auto type = static_cast<uint32_t>(ELF64_R_TYPE(relocation.r_info));
      if (!portable(machine, type)) return cannot(label, fmt::format("relocation {}", relocation_name(machine, type)));
      if (relocation.r_offset < image_half)
        return cannot(label, fmt::format("a relocation of its code at {:#x}", relocation.r_offset));
    }
  return {};
}

// ELF wants a segment's place in the file and in memory to agree modulo its alignment.
uint64_t pad(Bytes& out, uint64_t alignment) {
  out.resize((out.size() + alignment - 1) / alignment * alignment);
  return out.size();
}

void append_half(Bytes& out, size_t header_at, Segment& half) {
  half.header.p_align = half.alignment;
  half.header.p_offset = pad(out, half.alignment);
  half.header.p_paddr = half.header.p_vaddr;
  half.header.p_filesz = half.bytes.size();
  out.insert(out.end(), half.bytes.begin(), half.bytes.end());
  std::memcpy(out.data() + header_at, &half.header, sizeof half.header);
}

Bytes put_together(Elf64_Ehdr header, Parts& parts) {
  header.e_phoff = sizeof header;
  header.e_phnum = parts.has_data ? 3 : 2;
  header.e_shoff = 0;
  header.e_shnum = header.e_shstrndx = header.e_shentsize = 0;
  header.e_entry = 0;
  Bytes out(sizeof header + header.e_phnum * sizeof(Elf64_Phdr));
  std::memcpy(out.data(), &header, sizeof header);
  append_half(out, sizeof header, parts.text);
  parts.dynamic.p_offset = parts.text.header.p_offset + parts.dynamic.p_vaddr;
  parts.dynamic.p_paddr = parts.dynamic.p_vaddr;
  std::memcpy(out.data() + sizeof header + (header.e_phnum - 1u) * sizeof(Elf64_Phdr), &parts.dynamic,
              sizeof(Elf64_Phdr));
  if (parts.has_data) append_half(out, sizeof header + sizeof(Elf64_Phdr), parts.data);
  return out;
}

// Rewrites lld's output: two segments and a dynamic table with what a loader of ours reads, nothing between.
Result<Bytes> compact_shared_object(ByteView elf, const std::string& label) {
  const auto header = read_at<Elf64_Ehdr>(elf, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_DYN)
    return fail(TC_ERR_INTERNAL, "{}: the linker made no shared object", label);
  TC_ASSIGN(auto parts, take_apart(elf, label));
  TC_ASSIGN(const auto dynamic, reduce_dynamic(parts, label));
  TC_CHECK(check_relocations(parts, dynamic, header.e_machine, label));
  return put_together(header, parts);
}

}  // namespace

Result<Bytes> link_object(ByteView object, const TargetTriple& triple, const std::string& label) {
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
