// SPDX-License-Identifier: Apache-2.0
#include "ifunc/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tc::command {
namespace {

auto system_error(const std::string& path, const char* what) {
  return fail(TC_ERR_IO, "{}: cannot {}: {}", path, what, std::strerror(errno));
}

}  // namespace

Result<MappedFile> MappedFile::open(const std::string& path, Access access) {
  bool writable = access == Access::read_write_if_possible;
  int file = writable ? ::open(path.c_str(), O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) {
    writable = false;
    file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (file < 0) return system_error(path, "open");

  struct stat status{};
  if (fstat(file, &status) != 0) {
    auto error = system_error(path, "stat");
    ::close(file);
    return error;
  }
  const auto size = static_cast<size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size == 0) {
    ::close(file);
    return fail(TC_ERR_INVALID,
                "{}: only a regular file that is not empty can be mapped (`truncate -s SIZE FILE` "
                "makes one)",
                path);
  }
  void* data = mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, file, 0);
  auto error = system_error(path, "map");
  ::close(file);  // the mapping holds the file
  if (data == MAP_FAILED) return error;
  return MappedFile(data, size, writable);
}

Result<MappedFile> MappedFile::scratch(size_t size) {
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    return fail(TC_ERR_IO, "cannot get {} bytes of scratch memory: {}", size, std::strerror(errno));
  return MappedFile(data, size, true);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(other.data_), size_(other.size_), writable_(other.writable_) {
  other.data_ = nullptr;
  other.size_ = 0;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace tc::command
