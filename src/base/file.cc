// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/fd.h"

namespace tc {

namespace {

std::unexpected<Error> system_error(std::string_view verb, const std::filesystem::path& path) {
  const auto code = errno == ENOENT ? TC_ERR_NOT_FOUND : TC_ERR_IO;
  return fail(code, "cannot {} {}: {}", verb, path.string(), std::strerror(errno));
}

Status write_all(int fd, ByteView bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const auto written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("write", path);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace

Result<Bytes> read_file(const std::filesystem::path& path, size_t limit) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return system_error("open", path);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return system_error("stat", path);
  if (!S_ISREG(info.st_mode)) return fail(TC_ERR_INVALID, "cannot read {}: it is not a regular file", path.string());
  const auto size = static_cast<size_t>(info.st_size);
  if (size > limit)
    return fail(TC_ERR_TOO_LARGE, "{} is {} bytes when at most {} are allowed", path.string(), size, limit);
  Bytes bytes(size);
  size_t filled = 0;
  while (filled < size) {
    const auto got = ::read(file.get(), bytes.data() + filled, size - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", path);
    if (got == 0) break;
    filled += static_cast<size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

Status write_file_atomically(const std::filesystem::path& path, ByteView bytes) {
  const auto beside = fmt::format("{}.{}.new", path.string(), ::gettid());  // no other writer has this name
  {
    const Fd file(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (!file) return system_error("create", beside);
    if (auto written = write_all(file.get(), bytes, beside); !written) {
      ::unlink(beside.c_str());
      return written;
    }
  }
  if (::rename(beside.c_str(), path.c_str()) != 0) {
    ::unlink(beside.c_str());
    return system_error("replace", path);
  }
  return {};
}

// ---- Temporary directories

Result<TemporaryDirectory> TemporaryDirectory::create() {
  std::error_code error;
  auto base = std::filesystem::temp_directory_path(error);
  if (error) base = "/tmp";
  auto pattern = (base / "ifunc-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) return fail(TC_ERR_IO, "cannot create {}: {}", pattern, std::strerror(errno));
  return TemporaryDirectory(pattern);
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace tc
