// SPDX-License-Identifier: Apache-2.0
//
// Reading an object slice, an ELF image in the layout of wire/object_format.h. Whatever departs from it is refused with
// a message that says what and where. Nothing here executes or allocates, and no byte is read before its place was
// checked, because the bytes may come from anybody.
//
// Thread: any; an ElfImage only refers to the bytes it was read from, which must outlive it.
#pragma once

#include <elf.h>

#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/function_ref.h"
#include "wire/target_triple.h"

namespace tc {

class Bundle;

namespace target {

class ElfImage {
 public:
  // TC_ERR_MALFORMED, but TC_ERR_NO_SLICE when the machine is not `arch`, and TC_ERR_UNSUPPORTED for what an ELF
  // file may have and an ifunc may not (constructors, thread-locals, an executable stack).
  static Result<ElfImage> read(ByteView file, Arch arch);

  struct Half {
    ByteView bytes;   // from the file
    size_t size = 0;  // in memory; what `bytes` does not cover is zero
  };
  const Half& text() const noexcept { return text_; }
  const Half& data() const noexcept { return data_; }
  // To which multiple a placement must be aligned: 64 to 4096.
  size_t alignment() const noexcept { return alignment_; }
  Arch arch() const noexcept { return arch_; }

  // Relocations of both tables, one after the other.
  size_t relocation_count() const noexcept { return (rela_.size() + jump_rela_.size()) / sizeof(Elf64_Rela); }
  Elf64_Rela relocation(size_t index) const noexcept;  // index < relocation_count()

  size_t symbol_count() const noexcept { return symbols_.size() / sizeof(Elf64_Sym); }
  // TC_ERR_MALFORMED when the index is outside the table or its name outside the string table.
  struct Symbol {
    std::string_view name;
    uint64_t address = 0;  // in the image; 0 when undefined
    bool defined = false;
    bool weak = false;
  };
  Result<Symbol> symbol(size_t index) const;
  // The address of a defined symbol; of one that lies in the text half.
  std::optional<uint64_t> find(std::string_view name) const noexcept;
  std::optional<uint64_t> find_code(std::string_view name) const noexcept;

  // Does `address` lie in the image, or just behind one of its halves?
  bool contains(uint64_t address) const noexcept;
  // Do `size` bytes at `address` lie in the data half?
  bool in_data(uint64_t address, uint64_t size) const noexcept;

 private:
  struct Dynamic;
  Status read_header(ByteView file, Arch arch, Elf64_Ehdr& header);
  Status read_segments(ByteView file, const Elf64_Ehdr& header, Elf64_Phdr& dynamic);
  Status read_load(ByteView file, const Elf64_Phdr& segment);
  Status read_dynamic(const Elf64_Phdr& segment);
  Status take_tables(const Dynamic& dynamic);
  Result<uint64_t> count_symbols(const Dynamic& dynamic) const;
  Result<uint64_t> count_by_gnu_hash(uint64_t address) const;
  void find_alignment() noexcept;
  // Bytes of the file by their address in the image; nothing when any of them is outside.
  std::optional<ByteView> at(uint64_t address, uint64_t size) const noexcept;

  Arch arch_ = Arch::none;
  Half text_, data_;
  size_t alignment_ = 64;
  ByteView symbols_, strings_, rela_, jump_rela_;
};

// Calls `use` with the image of a bundle's object slice, which is valid during the call; without a copy when the slice is
// stored uncompressed. Errors of reading it, or those of `use`.
Status with_object(const Bundle& bundle, size_t slice, Arch arch, FunctionRef<Status(const ElfImage&)> use);

}  // namespace target
}  // namespace tc
