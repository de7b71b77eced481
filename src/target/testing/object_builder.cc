// SPDX-License-Identifier: Apache-2.0
#include "target/testing/object_builder.h"

#include <cstring>

#include "memory/code_mapping.h"

namespace tc::target::testing {

namespace {

template <class T>
void put(Bytes& out, const T& value) {
  const auto at = out.size();
  out.resize(at + sizeof value);
  std::memcpy(out.data() + at, &value, sizeof value);
}

void pad_to(Bytes& out, size_t size) { out.resize(size); }

Elf64_Dyn dynamic_entry(int64_t tag, uint64_t value) {
  Elf64_Dyn entry{};
  entry.d_tag = tag;
  entry.d_un.d_val = value;
  return entry;
}

uint16_t machine(Arch arch) { return arch == Arch::x86_64 ? EM_X86_64 : arch == Arch::aarch64 ? EM_AARCH64 : EM_RISCV; }

Elf64_Phdr segment(uint32_t type, uint32_t flags, uint64_t offset, uint64_t address, uint64_t in_file, uint64_t size,
                   uint64_t alignment) {
  Elf64_Phdr header{};
  header.p_type = type;
  header.p_flags = flags;
  header.p_offset = offset;
  header.p_vaddr = header.p_paddr = address;
  header.p_filesz = in_file;
  header.p_memsz = size;
  header.p_align = alignment;
  return header;
}

}  // namespace

ObjectBuilder::Layout ObjectBuilder::layout() const {
  Layout l{};
  l.segment_count = 2 + (data.empty() && bss == 0 ? 0 : 1) + more_segments.size();
  l.dynamic_count = 7 + more_dynamic.size();
  l.string_bytes = 1;
  for (const auto& s : symbols) l.string_bytes += s.name.size() + 1;
  l.hash_bytes = gnu_hash ? 16 + 8 + 4 + symbols.size() * 4 : 8 + 4 + (symbols.size() + 1) * 4;
  l.symbols = 0;
  l.dynamic = l.symbols + (symbols.size() + 1) * sizeof(Elf64_Sym);
  l.relocations = l.dynamic + l.dynamic_count * sizeof(Elf64_Dyn);
  l.hash = l.relocations + relocations.size() * sizeof(Elf64_Rela);
  l.strings = l.hash + l.hash_bytes;
  l.code = (l.strings + l.string_bytes + 15) & ~uint64_t{15};
  l.text_size = l.code + code.size();
  l.text_offset = sizeof(Elf64_Ehdr) + l.segment_count * sizeof(Elf64_Phdr);
  return l;
}

Bytes ObjectBuilder::build() const {
  const auto l = layout();
  Bytes out;
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_DYN;
  header.e_machine = machine(arch);
  header.e_version = EV_CURRENT;
  header.e_phoff = sizeof header;
  header.e_ehsize = sizeof header;
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = static_cast<uint16_t>(l.segment_count);
  put(out, header);
  put(out, segment(PT_LOAD, PF_R | PF_X, l.text_offset, 0, l.text_size, l.text_size, alignment));
  if (!data.empty() || bss != 0)
    put(out, segment(PT_LOAD, PF_R | PF_W, l.text_offset + l.text_size, memory::image_half, data.size(),
                     data.size() + bss, alignment));
  const auto dynamic_bytes = l.dynamic_count * sizeof(Elf64_Dyn);
  put(out, segment(PT_DYNAMIC, PF_R, l.text_offset + l.dynamic, l.dynamic, dynamic_bytes, dynamic_bytes, 8));
  for (const auto& s : more_segments) put(out, s);

  put(out, Elf64_Sym{});
  uint32_t name_at = 1;
  for (const auto& s : symbols) {
    Elf64_Sym symbol{};
    symbol.st_name = name_at;
    symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(s.binding, s.type));
    symbol.st_shndx = s.where == In::nowhere ? SHN_UNDEF : 1;
    symbol.st_value = s.where == In::nowhere ? 0 : s.offset + (s.where == In::data ? memory::image_half : l.code);
    put(out, symbol);
    name_at += static_cast<uint32_t>(s.name.size() + 1);
  }
  for (const auto& entry : more_dynamic) put(out, entry);
  put(out, gnu_hash ? dynamic_entry(DT_GNU_HASH, l.hash) : dynamic_entry(DT_HASH, l.hash));
  put(out, dynamic_entry(DT_SYMTAB, l.symbols));
  put(out, dynamic_entry(DT_STRTAB, l.strings));
  put(out, dynamic_entry(DT_STRSZ, l.string_bytes));
  put(out, dynamic_entry(DT_RELA, l.relocations));
  put(out, dynamic_entry(DT_RELASZ, relocations.size() * sizeof(Elf64_Rela)));
  put(out, dynamic_entry(DT_NULL, 0));
  for (const auto& r : relocations)
    put(out, Elf64_Rela{.r_offset = memory::image_half + r.offset,
                        .r_info = ELF64_R_INFO(uint64_t{r.symbol}, r.type),
                        .r_addend = r.addend});
  const auto count = static_cast<uint32_t>(symbols.size() + 1);
  if (gnu_hash) {
    for (const uint32_t word : {1u, 1u, 1u, 0u}) put(out, word);  // one bucket, first symbol 1, one bloom word
    put(out, ~uint64_t{0});
    put(out, uint32_t{1});
    for (uint32_t i = 1; i < count; ++i) put(out, uint32_t{i + 1 == count});
  } else {
    for (const uint32_t word : {1u, count, 0u}) put(out, word);
    for (uint32_t i = 0; i < count; ++i) put(out, uint32_t{0});
  }
  out.push_back(std::byte{0});
  for (const auto& s : symbols) {
    const auto name = as_bytes(s.name);
    out.insert(out.end(), name.begin(), name.end());
    out.push_back(std::byte{0});
  }
  pad_to(out, l.text_offset + l.code);
  out.insert(out.end(), code.begin(), code.end());
  out.insert(out.end(), data.begin(), data.end());
  return out;
}

Bytes bytes_of(std::initializer_list<int> values) {
  Bytes out;
  for (const int value : values) out.push_back(static_cast<std::byte>(value));
  return out;
}

ObjectBuilder counting_object(uint64_t tail) {
  ObjectBuilder object;
#if defined(__x86_64__)
  object.code = bytes_of({0x48, 0xFF, 0x02, 0xC3});  // inc qword ptr [rdx]; ret
#elif defined(__aarch64__)
  object.code = bytes_of({0x48, 0x00, 0x40, 0xF9, 0x08, 0x05, 0x00, 0x91,    // ldr x8, [x2]; add x8, x8, #1
                          0x48, 0x00, 0x00, 0xF9, 0xC0, 0x03, 0x5F, 0xD6});  // str x8, [x2]; ret
#else
  object.code = bytes_of({0x83, 0x37, 0x06, 0x00, 0x85, 0x07,    // ld a5, 0(a2); c.addi a5, 1
                          0x23, 0x30, 0xF6, 0x00, 0x82, 0x80});  // sd a5, 0(a2); ret
#endif
  put(object.code, tail);
  object.symbols.push_back({.name = "ifunc_main"});
  return object;
}

namespace {

// The relocation that fills a slot of the GOT.
uint32_t address_of_symbol(Arch arch) {
  return arch == Arch::x86_64 ? R_X86_64_GLOB_DAT : arch == Arch::aarch64 ? R_AARCH64_GLOB_DAT : R_RISCV_64;
}

// A 32-bit distance from the end of an instruction at `at` of the code to `offset` of the data half.
void put_distance(ObjectBuilder& object, size_t instruction_end, uint64_t offset) {
  const auto distance = static_cast<int32_t>(static_cast<int64_t>(memory::image_half + offset) -
                                             static_cast<int64_t>(object.code_address() + instruction_end));
  std::memcpy(object.code.data() + instruction_end - 4, &distance, 4);
}

}  // namespace

ObjectBuilder calling_object(const std::string& symbol) {
  ObjectBuilder object;
  object.code = bytes_of({0xFF, 0x25, 0, 0, 0, 0});  // jmp qword ptr [rip + distance]
  object.data.resize(8);
  object.symbols.push_back({.name = "ifunc_main"});
  object.symbols.push_back({.name = symbol, .where = ObjectBuilder::In::nowhere});
  object.relocations.push_back({.offset = 0, .type = address_of_symbol(object.arch), .symbol = 2});
  put_distance(object, 6, 0);
  return object;
}

ObjectBuilder data_address_object() {
  ObjectBuilder object;
  object.code = bytes_of({0x48, 0x8D, 0x05, 0, 0, 0, 0, 0x48, 0x89, 0x02, 0xC3});  // lea rax, ...; mov [rdx], rax; ret
  object.data.resize(16);
  object.symbols.push_back({.name = "ifunc_main"});
  put_distance(object, 7, 8);
  return object;
}

Bundle bundle_with(const std::string& name, Bytes object, std::vector<std::string> dependencies) {
  Manifest manifest;
  manifest.name = name;
  manifest.entries = entry_main;
  manifest.tool = "test";
  manifest.dependencies = std::move(dependencies);
  Slice slice;
  slice.triple = TargetTriple::host();
  slice.form = SliceForm::object;
  slice.unpacked_size = static_cast<uint32_t>(object.size());
  manifest.slices.push_back(slice);
  auto bundle = Bundle::pack(std::move(manifest), {std::move(object)});
  return std::move(*bundle);
}

}  // namespace tc::target::testing
