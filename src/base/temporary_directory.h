// SPDX-License-Identifier: Apache-2.0
//
// A directory of its own for temporary files, in TMPDIR or /tmp. Only our user can enter it. Threads: any; one object is
// used by one thread at a time.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace tc {

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
