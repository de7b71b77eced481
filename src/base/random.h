// SPDX-License-Identifier: Apache-2.0
//
// Numbers that cannot be guessed, from the system: reply tokens, cookies, instance numbers. The one place that asks for
// them. Threads: any.
//
// A test that wants known numbers defines random_bytes() itself; the linker then leaves this definition out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tc {

// Ends the process when the system has no random bytes, which takes a sandbox that forbids getrandom(): with numbers that
// can be guessed, a peer could answer calls that it never got.
void random_bytes(std::span<std::byte> bytes) noexcept;

inline uint64_t random_number() noexcept {
  uint64_t number = 0;
  random_bytes(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace tc
