// SPDX-License-Identifier: Apache-2.0
//
// Whole small files: bundles, caches, keys. Errors name the path and carry the system's words. Threads: any.
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

// Writes beside the file and renames, so that a reader sees the old bytes or the new ones, never half.
Status write_file_atomically(const std::filesystem::path& path, ByteView bytes);

struct Setting {
  std::string key, value;
  unsigned line = 0;
};

// In the order of the file. The value is what stands behind the first =, without blanks at its ends; it may be empty.
// TC_ERR_NOT_FOUND and TC_ERR_IO, as read_file(); TC_ERR_INVALID names the line.
Result<std::vector<Setting>> read_settings(const std::string& path);

// Its destructor removes the directory and all that is in it.
class TemporaryDirectory {
 public:
  // TC_ERR_IO with the system's words.
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
