// SPDX-License-Identifier: Apache-2.0
#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/random.h"

namespace tc {

namespace {

// Names that are tried until one is new. The second try is never needed, unless random numbers repeat.
constexpr int most_attempts = 8;

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

Result<NewFile> create_beside(const std::filesystem::path& path, mode_t mode) {
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const auto beside = std::filesystem::path(fmt::format("{}.{:016x}.new", path.string(), random_number()));
    Fd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (fd) return NewFile{std::move(fd), beside};
    if (errno != EEXIST) break;
  }
  return system_error("create a file beside", path);
}

Status write_file_atomically(const std::filesystem::path& path, ByteView bytes) {
  TC_ASSIGN(auto made, create_beside(path, 0644));
  if (auto written = write_all(made.fd.get(), bytes, path); !written) {
    ::unlink(made.path.c_str());
    return written;
  }
  made.fd.reset();  // before another process can find it
  if (::rename(made.path.c_str(), path.c_str()) != 0) {
    const auto failed = system_error("replace", path);
    ::unlink(made.path.c_str());
    return failed;
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
