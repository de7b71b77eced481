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

Result<MappedFile> MappedFile::map(Fd file, size_t size, bool writable, const std::string& what) {
  void* const data =
      mmap(nullptr, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED | MAP_NORESERVE, file.get(), 0);
  if (data == MAP_FAILED) return system_error(what, "map");
  return MappedFile(std::move(file), data, size, writable);
}

Result<MappedFile> MappedFile::open(const std::string& path, Access access) {
  bool writable = access == Access::read_write_if_possible;
  Fd file(writable ? ::open(path.c_str(), O_RDWR | O_CLOEXEC) : -1);
  if (!file) {
    writable = false;
    file = Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  }
  if (!file) return system_error(path, "open");

  struct stat status{};
  if (fstat(file.get(), &status) != 0) return system_error(path, "stat");
  const auto size = static_cast<size_t>(status.st_size);
  if (!S_ISREG(status.st_mode) || size == 0)
    return fail(TC_ERR_INVALID,
                "{}: only a regular file that is not empty can be mapped (`truncate -s SIZE FILE` "
                "makes one)",
                path);
  return map(std::move(file), size, writable, path);
}

Result<MappedFile> MappedFile::scratch(size_t size) {
  Fd memory(memfd_create("scratch", MFD_CLOEXEC));
  if (!memory || ftruncate(memory.get(), static_cast<off_t>(size)) != 0)
    return fail(TC_ERR_IO, "cannot get {} bytes of scratch memory: {}", size, std::strerror(errno));
  return map(std::move(memory), size, true, "scratch memory");
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : descriptor_(std::move(other.descriptor_)), data_(other.data_), size_(other.size_), writable_(other.writable_) {
  other.data_ = nullptr;
  other.size_ = 0;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace tc::command
