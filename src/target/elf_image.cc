// SPDX-License-Identifier: Apache-2.0
#include "target/elf_image.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <type_traits>

#include "wire/bundle.h"
#include "wire/object_format.h"

namespace tc::target {

namespace {

// Copies a structure of <elf.h> out of bytes, or says that it is not wholly there. Never a cast: the bytes may be
// anywhere and unaligned.
template <class T>
std::optional<T> record_at(ByteView bytes, uint64_t offset) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  T record;
  std::memcpy(&record, bytes.data() + offset, sizeof(T));
  return record;
}

using object_format::largest_alignment;
constexpr uint16_t most_segments = 16;
constexpr uint32_t riscv_attributes = 0x70000003;  // PT_RISCV_ATTRIBUTES

bool harmless(const Elf64_Phdr& segment) noexcept {
  switch (segment.p_type) {
    case PT_NULL:
    case PT_NOTE:
    case PT_PHDR:
    case PT_GNU_EH_FRAME:
    case PT_GNU_RELRO:
    case PT_GNU_PROPERTY:
    case riscv_attributes: return true;
    default: return false;
  }
}

// Does the code compute addresses by pages (ADRP)? Then it may only be moved by whole pages. Constants between the
// instructions can look like one; that costs memory, never correctness.
bool addresses_by_page(ByteView code) noexcept {
  for (size_t at = 0; at + 4 <= code.size(); at += 4) {
    uint32_t word;
    std::memcpy(&word, code.data() + at, sizeof word);
    if ((word & 0x9F000000u) == 0x90000000u) return true;
  }
  return false;
}

}  // namespace

Result<ElfImage> ElfImage::read(ByteView file, Arch arch) {
  ElfImage image;
  Elf64_Ehdr header;
  Elf64_Phdr dynamic{};
  TC_CHECK(image.read_header(file, arch, header));
  TC_CHECK(image.read_segments(file, header, dynamic));
  TC_CHECK(image.read_dynamic(dynamic));
  image.find_alignment();
  return image;
}

Status ElfImage::read_header(ByteView file, Arch arch, Elf64_Ehdr& header) {
  const auto found = record_at<Elf64_Ehdr>(file, 0);
  if (!found)
    return fail(TC_ERR_MALFORMED, "object is {} bytes when an ELF header alone is {}", file.size(), sizeof(Elf64_Ehdr));
  header = *found;
  const auto* const ident = header.e_ident;
  if (std::memcmp(ident, ELFMAG, SELFMAG) != 0)
    return fail(TC_ERR_MALFORMED, "object is no ELF file: it begins with {:02x}{:02x}{:02x}{:02x}", ident[0], ident[1],
                ident[2], ident[3]);
  if (ident[EI_CLASS] != ELFCLASS64 || ident[EI_DATA] != ELFDATA2LSB || ident[EI_VERSION] != EV_CURRENT)
    return fail(TC_ERR_MALFORMED,
                "ELF class {}, byte order {}, version {} when 2, 1, 1 (64-bit, little-endian) are needed",
                ident[EI_CLASS], ident[EI_DATA], ident[EI_VERSION]);
  if (header.e_type != ET_DYN)
    return fail(TC_ERR_MALFORMED, "ELF type {} when a linked image ({}) is needed", header.e_type, ET_DYN);
  const auto machine = object_format::elf_machine(arch);
  if (machine == EM_NONE || header.e_machine != machine)
    return fail(TC_ERR_NO_SLICE, "object is for ELF machine {} when its slice is for {} ({})", header.e_machine,
                arch_name(arch), machine);
  arch_ = arch;
  if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > most_segments)
    return fail(TC_ERR_MALFORMED, "{} program headers of {} bytes when at most {} of {} bytes are allowed",
                header.e_phnum, header.e_phentsize, most_segments, sizeof(Elf64_Phdr));
  return {};
}

Status ElfImage::read_segments(ByteView file, const Elf64_Ehdr& header, Elf64_Phdr& dynamic) {
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    const auto segment = header.e_phoff > file.size()
                             ? std::nullopt
                             : record_at<Elf64_Phdr>(file, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (!segment)
      return fail(TC_ERR_MALFORMED, "program header {} at byte {} when the object ends at byte {}", i,
                  header.e_phoff + i * sizeof(Elf64_Phdr), file.size());
    if (segment->p_type == PT_LOAD) {
      TC_CHECK(read_load(file, *segment));
    } else if (segment->p_type == PT_DYNAMIC) {
      dynamic = *segment;
    } else if (segment->p_type == PT_GNU_STACK) {
      if ((segment->p_flags & PF_X) != 0) return fail(TC_ERR_UNSUPPORTED, "object asks for an executable stack");
    } else if (segment->p_type == PT_TLS) {
      return fail(TC_ERR_UNSUPPORTED, "object has {} bytes of thread-local variables, which ifuncs cannot have",
                  segment->p_memsz);
    } else if (!harmless(*segment)) {
      return fail(TC_ERR_MALFORMED, "program header {} has type {:#x}, which an ifunc's object may not have", i,
                  segment->p_type);
    }
  }
  if (text_.size == 0) return fail(TC_ERR_MALFORMED, "object has no text segment at address 0");
  return {};
}

Status ElfImage::read_load(ByteView file, const Elf64_Phdr& segment) {
  const bool is_text = segment.p_vaddr == 0 && segment.p_flags == (PF_R | PF_X);
  const bool is_data = segment.p_vaddr == object_format::image_half && segment.p_flags == (PF_R | PF_W);
  auto& half = is_text ? text_ : data_;
  if ((!is_text && !is_data) || half.size != 0)
    return fail(TC_ERR_MALFORMED,
                "segment at address {:#x} with flags {} when one R+X at 0 and one R+W at {:#x} are allowed",
                segment.p_vaddr, segment.p_flags, object_format::image_half);
  if (segment.p_memsz > object_format::image_half || segment.p_filesz > segment.p_memsz)
    return fail(TC_ERR_MALFORMED, "segment at address {:#x} has {} bytes, {} in the file, when at most {} are allowed",
                segment.p_vaddr, segment.p_memsz, segment.p_filesz, object_format::image_half);
  if (segment.p_offset > file.size() || segment.p_filesz > file.size() - segment.p_offset)
    return fail(TC_ERR_MALFORMED, "segment of {} bytes at byte {} when the object ends at byte {}", segment.p_filesz,
                segment.p_offset, file.size());
  if (segment.p_align > 1 && !std::has_single_bit(segment.p_align))
    return fail(TC_ERR_MALFORMED, "segment at address {:#x} is aligned to {}, no power of two", segment.p_vaddr,
                segment.p_align);
  half.bytes = file.subspan(segment.p_offset, segment.p_filesz);
  half.size = segment.p_memsz;
  // Linkers write the page size of some systems here (64 KiB on aarch64) when nothing in the image asks for it.
  alignment_ = std::max<size_t>(alignment_, std::min<size_t>(segment.p_align, largest_alignment));
  return {};
}

void ElfImage::find_alignment() noexcept {
  if (arch_ == Arch::aarch64 && addresses_by_page(text_.bytes)) alignment_ = largest_alignment;
}

std::optional<ByteView> ElfImage::at(uint64_t address, uint64_t size) const noexcept {
  const bool high = address >= object_format::image_half;
  const auto& bytes = high ? data_.bytes : text_.bytes;
  const uint64_t offset = high ? address - object_format::image_half : address;
  if (offset > bytes.size() || size > bytes.size() - offset) return std::nullopt;
  return bytes.subspan(offset, size);
}

bool ElfImage::contains(uint64_t address) const noexcept {
  return address <= text_.size ||
         (data_.size != 0 && address >= object_format::image_half && address - object_format::image_half <= data_.size);
}

bool ElfImage::in_data(uint64_t address, uint64_t size) const noexcept {
  return address >= object_format::image_half && size <= data_.size &&
         address - object_format::image_half <= data_.size - size;
}

// ---- The dynamic table, and the symbols and relocations that it leads to

// The entries that we use, by tag. An address of 0 means "not there": at 0 lies the image's own beginning.
struct ElfImage::Dynamic {
  uint64_t symbols = 0, strings = 0, strings_size = 0;
  uint64_t rela = 0, rela_size = 0, jump_rela = 0, jump_rela_size = 0;
  uint64_t hash = 0, gnu_hash = 0;
  bool ended = false;

  Status take(const Elf64_Dyn& entry);
};

namespace {

constexpr uint64_t most_dynamic_entries = 256;
// These two keep the time that a hostile object costs in proportion to its size.
constexpr uint64_t most_symbols = 65536;
constexpr size_t longest_name = 4096;
constexpr int64_t relr = 36;  // DT_RELR

Status must_be(std::string_view what, uint64_t value, uint64_t allowed) {
  if (value == allowed) return {};
  return fail(TC_ERR_MALFORMED, "{} is {} when {} is needed", what, value, allowed);
}

}  // namespace

Status ElfImage::Dynamic::take(const Elf64_Dyn& entry) {
  const uint64_t value = entry.d_un.d_val;
  if (object_format::is_constructor_tag(entry.d_tag))
    return fail(TC_ERR_UNSUPPORTED, "object has constructors or destructors (dynamic tag {}), which a node never runs",
                entry.d_tag);
  switch (entry.d_tag) {
    case DT_NULL: ended = true; break;
    case DT_SYMTAB: symbols = value; break;
    case DT_STRTAB: strings = value; break;
    case DT_STRSZ: strings_size = value; break;
    case DT_RELA: rela = value; break;
    case DT_RELASZ: rela_size = value; break;
    case DT_JMPREL: jump_rela = value; break;
    case DT_PLTRELSZ: jump_rela_size = value; break;
    case DT_HASH: hash = value; break;
    case DT_GNU_HASH: gnu_hash = value; break;
    case DT_SYMENT: return must_be("size of a symbol", value, sizeof(Elf64_Sym));
    case DT_RELAENT: return must_be("size of a relocation", value, sizeof(Elf64_Rela));
    case DT_PLTREL: return must_be("kind of PLT relocations", value, DT_RELA);
    case DT_TEXTREL: return fail(TC_ERR_MALFORMED, "object wants relocations in its text");
    case DT_REL:
    case relr:
      return fail(TC_ERR_UNSUPPORTED, "object has relocations in a table of kind {} when only DT_RELA is read",
                  entry.d_tag);
    case DT_FLAGS:
      if ((value & DF_TEXTREL) != 0) return fail(TC_ERR_MALFORMED, "object wants relocations in its text");
      if ((value & DF_STATIC_TLS) != 0)
        return fail(TC_ERR_UNSUPPORTED, "object uses thread-local variables, which ifuncs cannot have");
      break;
    default: break;  // names, versions and hints for other loaders
  }
  return {};
}

Status ElfImage::read_dynamic(const Elf64_Phdr& segment) {
  if (segment.p_type != PT_DYNAMIC) return fail(TC_ERR_MALFORMED, "object has no dynamic table");
  const auto table = at(segment.p_vaddr, segment.p_filesz);
  if (!table)
    return fail(TC_ERR_MALFORMED, "dynamic table of {} bytes at address {:#x} lies outside the image", segment.p_filesz,
                segment.p_vaddr);
  Dynamic dynamic;
  for (uint64_t i = 0; i < most_dynamic_entries && !dynamic.ended; ++i) {
    const auto entry = record_at<Elf64_Dyn>(*table, i * sizeof(Elf64_Dyn));
    if (!entry) break;
    TC_CHECK(dynamic.take(*entry));
  }
  if (!dynamic.ended) return fail(TC_ERR_MALFORMED, "dynamic table of {} bytes has no end", table->size());
  return take_tables(dynamic);
}

Status ElfImage::take_tables(const Dynamic& dynamic) {
  TC_ASSIGN(const auto count, count_symbols(dynamic));
  if (count > most_symbols)
    return fail(TC_ERR_MALFORMED, "object has {} symbols when at most {} are allowed", count, most_symbols);
  const auto take = [this](ByteView& table, std::string_view what, uint64_t address, uint64_t size,
                           uint64_t record) -> Status {
    if (size % record != 0)
      return fail(TC_ERR_MALFORMED, "{} table of {} bytes is no multiple of {}", what, size, record);
    const auto bytes = at(address, size);
    if (!bytes)
      return fail(TC_ERR_MALFORMED, "{} table of {} bytes at address {:#x} lies outside the image", what, size,
                  address);
    table = *bytes;
    return {};
  };
  TC_CHECK(take(symbols_, "symbol", dynamic.symbols, count * sizeof(Elf64_Sym), sizeof(Elf64_Sym)));
  TC_CHECK(take(strings_, "string", dynamic.strings, dynamic.strings_size, 1));
  TC_CHECK(take(rela_, "relocation", dynamic.rela, dynamic.rela_size, sizeof(Elf64_Rela)));
  return take(jump_rela_, "PLT relocation", dynamic.jump_rela, dynamic.jump_rela_size, sizeof(Elf64_Rela));
}

// ELF does not write the number of symbols down; the hash tables imply it.
Result<uint64_t> ElfImage::count_symbols(const Dynamic& dynamic) const {
  if (dynamic.hash != 0) {
    struct Head {
      uint32_t buckets, chains;
    };
    const auto bytes = at(dynamic.hash, sizeof(Head));
    if (!bytes) return fail(TC_ERR_MALFORMED, "hash table at address {:#x} lies outside the image", dynamic.hash);
    return record_at<Head>(*bytes, 0)->chains;
  }
  if (dynamic.gnu_hash != 0) return count_by_gnu_hash(dynamic.gnu_hash);
  return fail(TC_ERR_MALFORMED, "object has no hash table, so its symbols cannot be counted");
}

Result<uint64_t> ElfImage::count_by_gnu_hash(uint64_t address) const {
  struct Head {
    uint32_t buckets, first, bloom_words, bloom_shift;
  };
  const auto& bytes = address >= object_format::image_half ? data_.bytes : text_.bytes;
  uint64_t offset = address >= object_format::image_half ? address - object_format::image_half : address;
  const auto outside = [address] {
    return fail(TC_ERR_MALFORMED, "GNU hash table at address {:#x} lies outside the image", address);
  };
  const auto head = record_at<Head>(bytes, offset);
  if (!head) return outside();
  offset += sizeof(Head) + uint64_t{head->bloom_words} * 8;
  uint64_t last = 0;
  for (uint64_t i = 0; i < head->buckets; ++i) {
    const auto bucket = record_at<uint32_t>(bytes, offset + i * 4);
    if (!bucket) return outside();
    last = std::max<uint64_t>(last, *bucket);
  }
  if (last < head->first) return head->first;
  offset += uint64_t{head->buckets} * 4;
  for (uint64_t i = last - head->first;; ++i) {
    const auto value = record_at<uint32_t>(bytes, offset + i * 4);
    if (!value) return outside();
    if ((*value & 1) != 0) return head->first + i + 1;
  }
}

Elf64_Rela ElfImage::relocation(size_t index) const noexcept {
  const size_t first = rela_.size() / sizeof(Elf64_Rela);
  const auto found = index < first ? record_at<Elf64_Rela>(rela_, index * sizeof(Elf64_Rela))
                                   : record_at<Elf64_Rela>(jump_rela_, (index - first) * sizeof(Elf64_Rela));
  return found.value_or(Elf64_Rela{});
}

Result<ElfImage::Symbol> ElfImage::symbol(size_t index) const {
  const auto found = record_at<Elf64_Sym>(symbols_, uint64_t{index} * sizeof(Elf64_Sym));
  if (!found || index >= symbol_count())
    return fail(TC_ERR_MALFORMED, "symbol {} when the object has {}", index, symbol_count());
  if (found->st_name >= strings_.size() && found->st_name != 0)
    return fail(TC_ERR_MALFORMED, "symbol {} has its name at byte {} of {} bytes of strings", index, found->st_name,
                strings_.size());
  const auto rest =
      as_text(strings_.subspan(std::min<size_t>(found->st_name, strings_.size()))).substr(0, longest_name);
  const auto end = rest.find('\0');
  if (end == std::string_view::npos && !rest.empty())
    return fail(TC_ERR_MALFORMED, "the name of symbol {} has no end within {} bytes", index, rest.size());
  const auto type = found->st_info & 0xf;
  Symbol symbol{.name = rest.substr(0, end), .address = found->st_value, .weak = found->st_info >> 4 == STB_WEAK};
  symbol.defined = found->st_shndx != SHN_UNDEF;
  if (type == STT_TLS || type == STT_GNU_IFUNC)
    return fail(TC_ERR_UNSUPPORTED, "symbol '{}' is of type {} (thread-local or resolved at run time)", symbol.name,
                type);
  if (symbol.defined && !contains(symbol.address))
    return fail(TC_ERR_MALFORMED, "symbol '{}' at address {:#x} lies outside the image", symbol.name, symbol.address);
  return symbol;
}

std::optional<uint64_t> ElfImage::find(std::string_view name) const noexcept {
  for (size_t i = 1; i < symbol_count(); ++i) {
    const auto found = symbol(i);
    if (found && found->defined && found->name == name && contains(found->address)) return found->address;
  }
  return std::nullopt;
}

std::optional<uint64_t> ElfImage::find_code(std::string_view name) const noexcept {
  const auto address = find(name);
  return address && *address < text_.size ? address : std::nullopt;
}

Status with_object(const Bundle& bundle, size_t slice, Arch arch, FunctionRef<Status(const ElfImage&)> use) {
  Bytes unpacked;
  ByteView bytes = bundle.stored(slice);
  if (bundle.manifest().slices[slice].compressed) {
    TC_ASSIGN(unpacked, bundle.unpack(slice));
    bytes = unpacked;
  }
  TC_ASSIGN(const auto image, ElfImage::read(bytes, arch));
  return use(image);
}

}  // namespace tc::target
