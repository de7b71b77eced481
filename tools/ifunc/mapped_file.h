// SPDX-License-Identifier: Apache-2.0
//
// A file in memory, or memory alone, for injected code to work on: changes to a writable file reach it.
// Threads: any; one object is used by one thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/result.h"

namespace tc::command {

class MappedFile {
 public:
  enum class Access { read_write_if_possible, read_only };

  // An empty file is refused: there is nothing to map. The file is not created. Its size is what it was here;
  // when a file is cut short while it is mapped, reading beyond its end kills the process, as always with mmap.
  static Result<MappedFile> open(const std::string& path, Access access);

  // Memory without a file, zero at first; pages that are not used cost nothing.
  static Result<MappedFile> scratch(size_t size);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  void* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool writable() const noexcept { return writable_; }

 private:
  MappedFile(void* data, size_t size, bool writable) noexcept : data_(data), size_(size), writable_(writable) {}

  void* data_;
  size_t size_;
  bool writable_;
};

}  // namespace tc::command
