// SPDX-License-Identifier: Apache-2.0
//
// Makes object slices byte by byte, for tests: right ones, and ones that are wrong in exactly one place.
#pragma once

#include <elf.h>

#include <string>
#include <vector>

#include "base/bytes.h"
#include "wire/bundle.h"
#include "wire/target_triple.h"

namespace tc::target::testing {

struct ObjectBuilder {
  enum class In { nowhere, text, data };
  struct Symbol {
    std::string name;
    In where = In::text;
    uint64_t offset = 0;  // from the code's or the data's beginning
    uint8_t type = STT_FUNC;
    uint8_t binding = STB_GLOBAL;
  };
  struct Relocation {
    uint64_t offset = 0;  // in the data half
    uint32_t type = 0;
    uint32_t symbol = 0;  // 1 is the first of `symbols`
    int64_t addend = 0;
  };

  Arch arch = TargetTriple::host().arch;
  Bytes code;
  Bytes data;
  uint64_t bss = 0;
  uint64_t alignment = 1;
  std::vector<Symbol> symbols;
  std::vector<Relocation> relocations;
  std::vector<Elf64_Dyn> more_dynamic;
  std::vector<Elf64_Phdr> more_segments;
  bool gnu_hash = false;

  Bytes build() const;
  // Where `code` will lie in the text half.
  uint64_t code_address() const { return layout().code; }

 private:
  struct Layout {
    uint64_t dynamic, symbols, hash, strings, relocations, code, text_size, text_offset;
    size_t dynamic_count, segment_count, string_bytes, hash_bytes;
  };
  Layout layout() const;
};

Bytes bytes_of(std::initializer_list<int> values);

// Code for this CPU: `++*(uint64_t*)target_args`, followed by the bytes in `tail` to make it one of many.
ObjectBuilder counting_object(uint64_t tail = 0);
// Calls the function whose address lies in the data half's first 8 bytes with the caller's arguments.
ObjectBuilder calling_object(const std::string& symbol);
// Stores the address of the data half's second 8 bytes, taken relative to the code, to *(void**)target_args.
ObjectBuilder data_address_object();

// A bundle named `name` with one object slice for this host, and what else the manifest says.
Bundle bundle_with(const std::string& name, Bytes object, std::vector<std::string> dependencies = {});

}  // namespace tc::target::testing
