// SPDX-License-Identifier: Apache-2.0
//
// A file in memory, or memory alone, for injected code to work on: changes to a writable file reach it.
// Threads: any; one object is used by one thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace tc::command {

class MappedFile {
 public:
  enum class Access { read_write_if_possible, read_only };

  // An empty file is refused: there is nothing to map. The file is not created. Its size is what it was here;
  // when a file is cut short while it is mapped, reading beyond its end kills the process, as always with mmap.
  static Result<MappedFile> open(const std::string& path, Access access);

  // A memfd, zero at first; pages that are not used cost nothing.
  static Result<MappedFile> scratch(size_t size);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  void* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }
  bool writable() const noexcept { return writable_; }
  // Of the file, which other processes may map, too.
  int descriptor() const noexcept { return descriptor_.get(); }

 private:
  static Result<MappedFile> map(Fd file, size_t size, bool writable, const std::string& what);
  MappedFile(Fd descriptor, void* data, size_t size, bool writable) noexcept
      : descriptor_(std::move(descriptor)), data_(data), size_(size), writable_(writable) {}

  Fd descriptor_;
  void* data_;
  size_t size_;
  bool writable_;
};

}  // namespace tc::command
