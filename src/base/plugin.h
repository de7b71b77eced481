// SPDX-License-Identifier: Apache-2.0
//
// Shared libraries of ours that are opened only when they are needed, so that nodes without them do not depend on
// what they link to. They are never closed: neither LLVM nor PMIx takes kindly to being unloaded.
//
// Threads: any.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"

namespace tc {

// The folder of the file that this very code was loaded from: libthreechains.so, or a program that contains it. Empty when
// it cannot be told.
std::filesystem::path own_folder();

// Opens the library `file`. `wish`, when not empty, is the only path that is tried; else it is looked for beside the
// library or program that this is part of, in the folder `threechains` there (Debian's packages), in the `lib` beside that
// folder, and along the loader's search path.
// TC_ERR_UNSUPPORTED: the loader's words about each place, to be put in a sentence with the remedy.
Result<void*> open_plugin(const std::string& file, const std::string& wish);

// The address of an exported function. TC_ERR_UNSUPPORTED.
Result<void*> find_in_plugin(void* library, const std::string& function);

}  // namespace tc
