// SPDX-License-Identifier: Apache-2.0
//
// Whole small files and temporary directories. Errors name the path and the system's reason.
//
// Threads: any; one thread at a time uses a TemporaryDirectory.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/result.h"

namespace tc {

// Refuses files over `limit` bytes (TC_ERR_TOO_LARGE) before reading them.
Result<Bytes> read_file(const std::filesystem::path& path, size_t limit);

// A new, empty file beside `path`, for its next content. Nobody can guess its name, and what has that name already is not
// opened: in a folder like /tmp another user may have put a link there. Its creator renames or removes it.
struct NewFile {
  Fd fd;
  std::filesystem::path path;
};
Result<NewFile> create_beside(const std::filesystem::path& path, mode_t mode);

// Writes a new file beside the old one and renames it. So a reader sees the old bytes or the new ones, never a part.
// Everybody may read it, as far as the umask allows.
Status write_file_atomically(const std::filesystem::path& path, ByteView bytes);

// A new directory in TMPDIR or /tmp, which only our user can enter. Its destructor removes it with all that is in it.
class TemporaryDirectory {
 public:
  // TC_ERR_IO.
  static Result<TemporaryDirectory> create();
  ~TemporaryDirectory();
  TemporaryDirectory(TemporaryDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryDirectory& operator=(TemporaryDirectory&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  const std::filesystem::path& path() const noexcept { return path_; }
  std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace tc
