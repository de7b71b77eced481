// SPDX-License-Identifier: Apache-2.0
//
// The dynamic table of an object slice, and the symbols and relocations that it leads to.
#include <algorithm>

#include "target/elf_image.h"
#include "target/elf_records.h"
#include "wire/object_format.h"

namespace tc::target {

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

}  // namespace tc::target
