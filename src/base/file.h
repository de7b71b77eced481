// SPDX-License-Identifier: Apache-2.0
//
// Whole small files: bundles, caches, keys. Errors name the path and carry the system's words. Threads: any.
#pragma once

#include <filesystem>

#include "base/bytes.h"

namespace tc {

// Refuses files over `limit` bytes (TC_ERR_TOO_LARGE) before reading them.
Result<Bytes> read_file(const std::filesystem::path& path, size_t limit);

// Writes beside the file and renames, so that a reader sees the old bytes or the new ones, never half.
Status write_file_atomically(const std::filesystem::path& path, ByteView bytes);

}  // namespace tc
