// SPDX-License-Identifier: Apache-2.0
//
// Numbers that cannot be guessed: reply tokens, cookies, instance numbers. This is the one place that asks the system
// for them. A test can define random_bytes() itself to have known numbers. The linker then leaves this definition out,
// because random.cc has nothing else.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tc {

// Ends the process when the system has no random bytes, for example in a sandbox that forbids getrandom(). With numbers
// that can be guessed, a peer could answer calls that it never got.
void random_bytes(std::span<std::byte> bytes) noexcept;

inline uint64_t random_number() noexcept {
  uint64_t number = 0;
  random_bytes(std::as_writable_bytes(std::span(&number, 1)));
  return number;
}

}  // namespace tc
