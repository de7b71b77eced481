// SPDX-License-Identifier: Apache-2.0
//
// SHA-256. Code that a node has not seen before is named and checked by it between the last byte's arrival and the first
// execution, so its speed shows (docs/measuring.md, "Never-seen code").
//
// Why this is our own and not a library's, measured on one x86-64 CPU with SHA extensions:
//   - libsodium has portable code only: 40 us for 16 KiB where this takes 9 us, and 1.5 us for 512 bytes instead of 0.3.
//   - OpenSSL's libcrypto uses the extensions too (9.4 us for 16 KiB; 0.35 us for 512 bytes with a context that is kept,
//     0.54 us with a new one). But a program that links it statically for this one function grows by 3.7 MB, and a small
//     node is 2 MB in all (docs/small-nodes.md).
//   - src/base lies below src/trust, the only folder that may know a crypto library.
//   - Neither computes the digests of two messages at once, which a code and its bundle need: 1.5 times the time of one.
// The tests compare it with the standard's examples and with libsodium, at every length.
//
// Threads: any.
#pragma once

#include <array>
#include <utility>

#include "base/bytes.h"

namespace tc {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(ByteView data) noexcept;
// Those of two messages: where the CPU has the instructions, in little more time than the longer one alone takes.
std::pair<Sha256, Sha256> sha256_pair(ByteView a, ByteView b) noexcept;

// For any CPU; the same digest.
Sha256 portable_sha256(ByteView data) noexcept;

#if defined(__x86_64__)
// By the SHA extensions. Only where has_sha_extensions().
bool has_sha_extensions() noexcept;
Sha256 sha256_by_extensions(ByteView data) noexcept;
std::pair<Sha256, Sha256> sha256_pair_by_extensions(ByteView a, ByteView b) noexcept;
#endif

}  // namespace tc
