// SPDX-License-Identifier: Apache-2.0
//
// The file header and the segments. The dynamic table and what it leads to are in elf_dynamic.cc.
#include "target/elf_image.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "target/elf_records.h"
#include "wire/object_format.h"

namespace tc::target {

namespace {

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

}  // namespace tc::target
