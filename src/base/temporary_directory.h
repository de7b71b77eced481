// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace tc {

// A directory of our own where temporary files go, removed with all that is in it. TC_ERR_IO when there can be none.
class TemporaryDirectory {
 public:
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
