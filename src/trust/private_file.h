// SPDX-License-Identifier: Apache-2.0
//
// Files that decide about trust. The owner and the mode are checked on the open file. A check by name would not be
// safe, because the name may mean another file a moment later. Links are followed, as ssh does.
//
// Threads: any. A FileLock keeps other processes and threads from editing at the same time.
#pragma once

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace tc::trust {

// `secret`: only our own user may read or write the file. `policy`: others may read it, but only our own user and root
// may write it.
enum class Guard : uint8_t { secret, policy };

// Opens a file for reading. TC_ERR_NOT_FOUND; TC_ERR_DENIED with the command that helps; TC_ERR_INVALID: it is not a
// regular file.
Result<Fd> open_guarded(const std::filesystem::path& file, Guard guard);
// Reads the whole file as text. TC_ERR_TOO_LARGE: it has more than `limit` bytes.
Result<std::string> read_guarded(const std::filesystem::path& file, Guard guard, size_t limit);
// The same with Guard::policy. A missing file is empty text.
Result<std::string> read_policy(const std::filesystem::path& file, size_t limit);

// Writes a file atomically, in these steps:
//   1. Make its folder (0700) if it is missing.
//   2. Write a new file beside it, and sync it.
//   3. Put the new file in its place.
// Only the owner can read a new file. A file that replaces another keeps its readers. `only_new`: TC_ERR_BUSY when the
// file exists.
enum class Replace : uint8_t { only_new, any };
Status write_guarded(const std::filesystem::path& file, std::string_view text, Replace replace);

// Allows one editor at a time, across processes, by a lock on "FILE.lock". TC_ERR_BUSY after two seconds.
class FileLock {
 public:
  static Result<FileLock> of(const std::filesystem::path& file);

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// Overwrites secret bytes. Compilers do not remove this.
void wipe(void* bytes, size_t size) noexcept;

}  // namespace tc::trust
