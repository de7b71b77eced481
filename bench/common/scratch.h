// SPDX-License-Identifier: Apache-2.0
//
// A directory for a benchmark's own files, removed with all that is in it.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/result.h"

namespace tc::bench {

class Scratch {
 public:
  static Result<Scratch> create() {
    std::string name = (std::filesystem::temp_directory_path() / "ifunc-bench-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return fail(TC_ERR_IO, "{} cannot be created", name);
    return Scratch(name);
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  explicit Scratch(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;
};

}  // namespace tc::bench
