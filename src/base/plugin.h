// SPDX-License-Identifier: Apache-2.0
//
// Shared libraries of ours that a node opens only when it needs them. So a node without them does not depend on the
// libraries that they link. They are never closed, because neither LLVM nor PMIx can be unloaded safely.
//
// Threads: any.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace tc {

// The folder of the file that holds this code: libthreechains.so, or a program that contains it. Empty: unknown.
std::filesystem::path own_folder();

// The path of a program of ours that people do not run themselves: in the folder TC_LIBEXEC, if that is set; else in
// libexec/threechains beside the folder of this code, or, for a library in lib/ARCH-linux-gnu, beside the one above it. The
// program need not be there.
std::filesystem::path own_program(const std::string& name);

// Opens the library `file`. If `wish` is not empty, it is the only path to try. Otherwise, these places are tried in
// order:
//   1. own_folder()
//   2. the folder `threechains` in it (Debian's packages)
//   3. the folder `lib` beside own_folder()
//   4. the loader's search path
// TC_ERR_UNSUPPORTED has the loader's message for each place. The caller puts it into a sentence that says what to do.
Result<void*> open_plugin(const std::string& file, const std::string& wish);

// The address of an exported function. TC_ERR_UNSUPPORTED.
Result<void*> find_in_plugin(void* library, const std::string& function);

}  // namespace tc
