// SPDX-License-Identifier: Apache-2.0
//
// For tests only: bundles that pack() would refuse to make.
#pragma once

#include <string>
#include <vector>

#include "wire/bundle.h"
#include "wire/bundle_format.h"

namespace tc::testing {

// A manifest written by hand, so that it can say what pack() would refuse.
struct RawSlice {
  uint8_t role = 0, form = 2, packing = 0;
  std::string triple = "x86_64-linux-gnu", cpu;
  uint32_t stored_size = 4, unpacked_size = 4;
  ContentId hash = ContentId::of(as_bytes("code"));
};
struct RawManifest {
  uint8_t version = bundle_format::manifest_version, alignment = 4;
  std::string name = "raw", tool = "test";
  uint8_t dependencies_claimed = 0;
  uint16_t imports_claimed = 0;
  uint8_t slices_claimed = 1;
  std::vector<std::string> dependencies, imports;
  std::vector<RawSlice> slices = {RawSlice{}};
  uint8_t entries = entry_main;
  Bytes behind;  // what the entries say is there: exports, libraries
};

inline Bytes file_of(const RawManifest& m, std::string_view slices = "code") {
  Bytes manifest;
  Writer w(manifest);
  w.u8(m.version).u8(1).u8(m.entries).u8(m.alignment).str8(m.name).str8(m.tool).u8(m.dependencies_claimed);
  for (const auto& name : m.dependencies) w.str8(name);
  w.u16(m.imports_claimed);
  for (const auto& name : m.imports) w.str16(name);
  w.u8(m.slices_claimed);
  for (const auto& s : m.slices)
    w.u8(s.role)
        .u8(s.form)
        .u8(s.packing)
        .str8(s.triple)
        .str8(s.cpu)
        .u32(s.stored_size)
        .u32(s.unpacked_size)
        .bytes(s.hash.bytes);
  w.bytes(m.behind);
  Bytes file;
  Writer(file)
      .u32(bundle_format::magic)
      .u32(static_cast<uint32_t>(manifest.size()))
      .bytes(manifest)
      .bytes(as_bytes(slices));
  return file;
}

}  // namespace tc::testing
