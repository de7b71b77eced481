// SPDX-License-Identifier: Apache-2.0
//
// How the parts of a bundle are written and read: the manifest and the signatures. For bundle.cc and tests. The bytes
// come from anywhere. docs/wire-format.md says what they mean.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "wire/bundle.h"

namespace tc::bundle_format {

inline constexpr uint32_t magic = 0x31424354;  // "TCB1"
inline constexpr size_t header_bytes = 8;      // magic, manifest size
inline constexpr uint8_t manifest_version = 1;

inline constexpr uint32_t signatures_magic = 0x31534354;  // "TCS1"
inline constexpr size_t signatures_header_bytes = 5;      // magic, count
inline constexpr size_t signature_bytes = 1 + 32 + 64;    // what it covers, key, signature

constexpr uint64_t all_slices(size_t count) noexcept { return count >= 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; }

Bytes encode_manifest(const Manifest& manifest);
Result<Manifest> read_manifest(ByteView bytes);

// Can a signature cover that? The whole bundle, or a slice that is a bundled ifunc.
bool can_be_covered(uint8_t covers, const Manifest& manifest) noexcept;
// The section behind the slices: everything that `in` has left. A bundle without signatures has no section.
Result<std::vector<CodeSignature>> read_signatures(Reader& in, const Manifest& manifest);
void write_signatures(Writer& out, const std::vector<CodeSignature>& signatures);
size_t size_of_signatures(size_t count) noexcept;

}  // namespace tc::bundle_format
