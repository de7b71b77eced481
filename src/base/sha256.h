// SPDX-License-Identifier: Apache-2.0
//
// SHA-256. Code that was never seen before is named and checked by it between its last byte and its first execution
// (docs/measuring.md, "Never-seen code"), where libsodium's portable code took most of the time: so the CPU's own
// instructions are used where there are any.
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

// The portable way, for any CPU; the same digest.
Sha256 portable_sha256(ByteView data) noexcept;

#if defined(__x86_64__)
// By the SHA extensions. Only where has_sha_extensions().
bool has_sha_extensions() noexcept;
Sha256 sha256_by_extensions(ByteView data) noexcept;
std::pair<Sha256, Sha256> sha256_pair_by_extensions(ByteView a, ByteView b) noexcept;
#endif

}  // namespace tc
