// SPDX-License-Identifier: Apache-2.0
//
// Files that decide about trust: who may read and write them is checked on what was opened, not on a name that may mean
// another file a moment later. Links are followed, as ssh does.
//
// Thread: any; a FileLock keeps other processes and threads from editing at the same time.
#pragma once

#include <filesystem>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace tc::trust {

// `secret`: only our own user may read or write it. `policy`: others may read it; only our own user and root may write it.
enum class Guard : uint8_t { secret, policy };

// Opens it for reading. TC_ERR_NOT_FOUND, TC_ERR_DENIED with the command that helps, TC_ERR_INVALID: no regular file.
Result<Fd> open_guarded(const std::filesystem::path& file, Guard guard);
// At most `limit` bytes of it as text. TC_ERR_TOO_LARGE.
Result<std::string> read_guarded(const std::filesystem::path& file, Guard guard, size_t limit);
// The same; a file that is not there has no text.
Result<std::string> read_policy(const std::filesystem::path& file, size_t limit);

// Makes its folder (0700) if need be, writes beside the file, syncs, and puts the new file in its place in one step. A new
// file is readable by its owner alone; a file that is replaced keeps who may read it. `only_new`: TC_ERR_BUSY when it is
// there already.
enum class Replace : uint8_t { only_new, any };
Status write_guarded(const std::filesystem::path& file, std::string_view text, Replace replace);

// One editor at a time, across processes: a lock on "FILE.lock". TC_ERR_BUSY after two seconds.
class FileLock {
 public:
  static Result<FileLock> of(const std::filesystem::path& file);

 private:
  explicit FileLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

// Overwrites secret bytes; no compiler leaves it out.
void wipe(void* bytes, size_t size) noexcept;

}  // namespace tc::trust
