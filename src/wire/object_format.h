// SPDX-License-Identifier: Apache-2.0
//
// The form of an object slice, which the toolchain writes and a node's loader reads. It is an ELF64 shared image:
//
//     address 0            text half: one PT_LOAD, R+X (code, constants, symbols, relocations)
//     address image_half   data half: one PT_LOAD, R+W (variables, GOT, .bss); may be absent
//     PT_DYNAMIC           in the text half: `table_tags` alone
//
// It has no section headers and no constructors, and relocations only in the data half. docs/wire-format.md describes
// it. The distance between the halves is the same in every image, so a loader can keep text and data in two arenas.
//
// Threads: any; these are constants and pure functions.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>

#include "wire/target_triple.h"

namespace tc::object_format {

// The distance between the halves, and the largest size of either.
inline constexpr size_t image_half = size_t{64} * 1024 * 1024;
// The largest alignment that an image may ask for, which is the page size that it is linked for.
inline constexpr size_t largest_alignment = 4096;

// The entries of the dynamic table that the toolchain leaves in a slice. A loader also reads DT_GNU_HASH, because other
// linkers write it instead of DT_HASH.
inline constexpr int64_t table_tags[] = {DT_HASH,   DT_SYMTAB,  DT_STRTAB, DT_STRSZ,    DT_SYMENT, DT_RELA,
                                         DT_RELASZ, DT_RELAENT, DT_JMPREL, DT_PLTRELSZ, DT_PLTREL};
// True: the entry is about constructors or destructors, which a node never runs.
constexpr bool is_constructor_tag(int64_t tag) noexcept {
  return tag == DT_INIT || tag == DT_INIT_ARRAY || tag == DT_INIT_ARRAYSZ || tag == DT_PREINIT_ARRAY ||
         tag == DT_PREINIT_ARRAYSZ || tag == DT_FINI || tag == DT_FINI_ARRAY || tag == DT_FINI_ARRAYSZ;
}

// EM_X86_64 and so on. EM_NONE: there are no object slices for this processor.
uint16_t elf_machine(Arch arch) noexcept;
Arch arch_of_elf(uint16_t machine) noexcept;

// The relocations that an object slice may have. There are few, because the linker resolves all others. So one loader
// serves every processor.
enum class Relocation : uint8_t {
  unknown,   // not allowed
  nothing,   // a placeholder
  relative,  // the image's address + addend
  symbol,    // the symbol's address + addend
};

// The meaning of the ELF relocation `type` of that processor.
Relocation relocation_of(Arch arch, uint32_t type) noexcept;

}  // namespace tc::object_format
