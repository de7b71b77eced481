// SPDX-License-Identifier: Apache-2.0
//
// Does a frame table (.eh_frame) speak of its own object's code alone? An unwinder looks for the entry of an address in all tables
// that it knows, and calls the function that the entry names. So an entry that claims addresses of others runs its function
// whenever an exception passes through theirs.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.h"

namespace tc::target::jit {

// `table` is linked and lies where it will be used; `text` is where the object's code does. Every entry must describe code
// inside `text`. What an unwinder might read in another way than this function is refused as well: lengths of 64 bits, versions
// and augmentations that compilers do not write, a common part (CIE) that stands behind the entry that uses it. TC_ERR_COMPILE.
Status check_frames(std::span<const std::byte> table, std::span<const std::byte> text);

}  // namespace tc::target::jit
