// SPDX-License-Identifier: Apache-2.0
//
// Does code that is written at one address run at the other, also where older code ran before? A processor does, once
// its instruction cache is told. A user-mode emulator keeps what it translated, and notices new code only where it
// sees it being written: QEMU before 8.1 runs the old code (tests on other processors: docs/heterogeneous.md).
#pragma once

#include <cstddef>

namespace tc::memory {

// Makes `bytes` at `begin` fit to be executed after they were written, here or at another address of the same memory.
// On x86-64 this is nothing; elsewhere the instruction fetch must be told.
void sync_instructions(std::byte* begin, size_t bytes) noexcept;

// Before code that was made fit on this thread is shown to another one: that one's processor may have fetched what was
// there before, and Arm and RISC-V leave it to software to make it fetch again. Nothing on x86-64.
void sync_other_threads() noexcept;

// Runs two tiny functions after each other in the first bytes of a mapping, which are zero afterwards. `code` is where
// the memory executes, `writable` where it is written.
bool new_code_runs(std::byte* code, std::byte* writable) noexcept;

}  // namespace tc::memory
