// SPDX-License-Identifier: Apache-2.0
//
// For tests only: made-up bundles and bytes that every test of a wire format wants.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "wire/bundle.h"

namespace tc::testing {

inline Bytes bytes_of(std::string_view text) {
  const auto view = as_bytes(text);
  return {view.begin(), view.end()};
}

// A zstd frame of one raw block, made by hand so that it is the same whatever zstd is installed.
inline Bytes zstd_frame_of(std::string_view text) {
  Bytes out;
  Writer(out)
      .u32(0xfd2fb528)                                        // magic
      .u8(0x20)                                               // one segment, its size in one byte
      .u8(static_cast<uint8_t>(text.size()))                  //
      .u8(static_cast<uint8_t>((text.size() & 31) << 3 | 1))  // last block, raw, size in 21 bits
      .u16(static_cast<uint16_t>(text.size() >> 5))
      .bytes(as_bytes(text));
  return out;
}

inline Slice slice_for(std::string_view triple, SliceRole role, SliceForm form, std::string cpu = "") {
  Slice s;
  s.triple = TargetTriple::parse(triple).value();
  s.role = role;
  s.form = form;
  s.cpu = std::move(cpu);
  return s;
}

inline constexpr std::string_view x86 = "x86_64-unknown-linux-gnu";
inline constexpr std::string_view arm = "aarch64-unknown-linux-gnu";

// Name, libraries, imports, and four slices of made-up bytes: compressed bitcode and plain objects, target and source.
inline Bundle four_slices() {
  Manifest m;
  m.name = "golden";
  m.entries = entry_main | entry_payload_get_max_size | entry_payload_init;
  m.payload_alignment_log2 = 6;
  m.tool = "by hand";
  m.dependencies = {"libsqlite3.so.0"};
  m.imports = {"tc_reply", "sqlite3_exec"};
  m.slices = {slice_for(x86, SliceRole::target, SliceForm::bitcode),
              slice_for(x86, SliceRole::target, SliceForm::object, "x86-64-v2"),
              slice_for(arm, SliceRole::target, SliceForm::bitcode),
              slice_for(x86, SliceRole::source, SliceForm::object, "x86-64-v2")};
  const std::string bitcode(40, 'B');
  m.slices[0].compressed = true;
  m.slices[0].unpacked_size = static_cast<uint32_t>(bitcode.size());
  return Bundle::pack(
             m, {zstd_frame_of(bitcode), bytes_of("an x86 object"), bytes_of("arm bitcode"), bytes_of("source side")})
      .value();
}

// One slice of code, and the bundle above as its bundled ifunc.
inline Bundle with_bundled() {
  Manifest m;
  m.name = "leader";
  m.entries = entry_main;
  m.tool = "by hand";
  m.slices = {slice_for(x86, SliceRole::target, SliceForm::object, "x86-64-v2"), Slice{}};
  m.slices[1].role = SliceRole::bundled;
  m.slices[1].form = SliceForm::bundle;
  m.slices[1].cpu = "golden";
  return Bundle::pack(m, {bytes_of("code"), four_slices().bytes()}).value();
}

// A library that is sent, and an ifunc that uses it.
inline Bundle a_library() {
  Manifest m;
  m.name = "hash";
  m.entries = entry_main | entry_library;
  m.tool = "by hand";
  m.exports = {"hash", "hash_name"};
  m.slices = {slice_for(x86, SliceRole::target, SliceForm::object, "x86-64-v2")};
  return Bundle::pack(m, {bytes_of("library")}).value();
}

inline Bundle a_librarys_user() {
  Manifest m;
  m.name = "digest";
  m.entries = entry_main | entry_against;
  m.tool = "by hand";
  m.imports = {"hash"};
  m.against = {"hash"};
  m.slices = {slice_for(x86, SliceRole::target, SliceForm::object, "x86-64-v2")};
  return Bundle::pack(m, {bytes_of("user")}).value();
}

// Code whose author says that it may run at the same time as other code.
inline Bundle concurrent_code() {
  Manifest m;
  m.name = "lookup";
  m.entries = entry_main | entry_concurrent;
  m.tool = "by hand";
  m.slices = {slice_for(x86, SliceRole::target, SliceForm::object, "x86-64-v2")};
  return Bundle::pack(m, {bytes_of("lookup")}).value();
}

}  // namespace tc::testing
