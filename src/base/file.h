// SPDX-License-Identifier: Apache-2.0
//
// Whole small files, files of settings, and temporary directories. Errors name the path and the system's reason.
//
// Threads: any; one thread at a time uses a TemporaryDirectory.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace tc {

// Refuses files over `limit` bytes (TC_ERR_TOO_LARGE) before reading them.
Result<Bytes> read_file(const std::filesystem::path& path, size_t limit);

// Writes a new file beside the old one and renames it. So a reader sees the old bytes or the new ones, never a part.
Status write_file_atomically(const std::filesystem::path& path, ByteView bytes);

// A line of a file of settings: `key = value`. Lines that begin with # are comments.
struct Setting {
  std::string key, value;
  unsigned line = 0;
};

// Reads the settings in the order of the file. The value is the text behind the first =, without blanks at its ends. It
// may be empty. TC_ERR_NOT_FOUND and TC_ERR_IO as read_file(). TC_ERR_INVALID names the line.
Result<std::vector<Setting>> read_settings(const std::string& path);

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
