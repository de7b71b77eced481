// SPDX-License-Identifier: Apache-2.0
//
// SHA-256. It names and checks never-seen code between the arrival of the last byte and the first execution. So its
// speed matters (docs/measuring.md, "Never-seen code").
//
// Why we do not use a library (measured on one x86-64 CPU with SHA extensions):
//   - libsodium has portable code only. 16 KiB take 40 us, and 9 us here; 512 bytes take 1.5 us, and 0.3 us here.
//   - OpenSSL's libcrypto uses the extensions, too: 9.4 us for 16 KiB, and 0.35 us for 512 bytes. But a program that
//     links it statically for this one function grows by 3.7 MB. A small node has 2 MB in all (docs/small-nodes.md).
//   - src/base lies below src/trust, the only folder that may know a crypto library.
//   - Neither can hash two messages at once, as code and its bundle need it. Here, two take 1.5 times the time of one.
// The tests compare all digests with the standard's examples and with libsodium, at every length.
//
// Threads: any.
#pragma once

#include <array>
#include <utility>

#include "base/bytes.h"

namespace tc {

using Sha256 = std::array<std::byte, 32>;

Sha256 sha256(ByteView data) noexcept;
// The digests of two messages. With SHA extensions, this takes little more time than the longer message alone.
std::pair<Sha256, Sha256> sha256_pair(ByteView a, ByteView b) noexcept;

// The code for any CPU.
Sha256 portable_sha256(ByteView data) noexcept;

#if defined(__x86_64__)
// The code with SHA extensions. Call it only if has_sha_extensions().
bool has_sha_extensions() noexcept;
Sha256 sha256_by_extensions(ByteView data) noexcept;
std::pair<Sha256, Sha256> sha256_pair_by_extensions(ByteView a, ByteView b) noexcept;
#endif

}  // namespace tc
