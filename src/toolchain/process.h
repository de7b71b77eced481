// SPDX-License-Identifier: Apache-2.0
//
// Running the programs that we stand on (clang, lld) and keeping what they leave behind out of the way.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::toolchain {

// The first of `names` that can be run: `variable` of the environment when it is set, then each name along PATH.
// TC_ERR_NOT_FOUND names what was tried and how to get it.
Result<std::string> find_tool(const char* variable, const std::vector<std::string>& names, std::string_view remedy);

// Runs `arguments[0]` with the rest, on our own standard streams, and waits. Returns its exit status; a signal
// that ended it, or a program that cannot be started, is TC_ERR_IO.
Result<int> run(const std::vector<std::string>& arguments);

// A directory of our own, removed with all that is in it.
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

 private:
  explicit TemporaryDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace tc::toolchain
