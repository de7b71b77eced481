// SPDX-License-Identifier: Apache-2.0
#include "trust/private_file.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "base/clock.h"
#include "base/file.h"

namespace tc::trust {

namespace {

namespace fs = std::filesystem;

constexpr mode_t readable_by_others = S_IRGRP | S_IROTH;
constexpr mode_t writable_by_others = S_IWGRP | S_IWOTH;
constexpr uint64_t lock_ms = 2000;

std::unexpected<Error> system_error(std::string_view verb, const fs::path& file, int error) {
  const auto code = error == ENOENT || error == ENOTDIR ? TC_ERR_NOT_FOUND : TC_ERR_IO;
  return fail(code, "cannot {} {}: {}", verb, file.string(), system_words(error));
}

Status check(const struct stat& info, const fs::path& file, Guard guard) {
  const auto us = ::geteuid();
  if (!S_ISREG(info.st_mode)) return fail(TC_ERR_INVALID, "{} is not a regular file", file.string());
  const bool by_root = guard == Guard::policy && info.st_uid == 0;
  if (info.st_uid != us && !by_root)
    return fail(TC_ERR_DENIED, "{} belongs to user {}, and this process runs as user {}: `chown {} {}`", file.string(),
                info.st_uid, us, us, file.string());
  const auto forbidden =
      guard == Guard::secret ? readable_by_others | writable_by_others | S_IXGRP | S_IXOTH : writable_by_others;
  if ((info.st_mode & forbidden) != 0)
    return fail(TC_ERR_DENIED, "{} may be {} by other users (mode {:04o}): `chmod {} {}`", file.string(),
                guard == Guard::secret ? "used" : "written", info.st_mode & 07777,
                guard == Guard::secret ? "600" : "go-w", file.string());
  return {};
}

Status write_all(int fd, std::string_view text, const fs::path& file) {
  while (!text.empty()) {
    const auto written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return system_error("write", file, errno);
    text.remove_prefix(static_cast<size_t>(written));
  }
  if (::fsync(fd) != 0) return system_error("write", file, errno);
  return {};
}

Status make_folder(const fs::path& folder) {
  if (folder.empty()) return {};
  std::error_code error;
  if (fs::is_directory(folder, error)) return {};
  TC_CHECK(make_folder(folder.parent_path()));
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return system_error("make the folder", folder, errno);
  return {};
}

// Without this, the new name may be lost in a power cut.
void sync_folder_of(const fs::path& file) noexcept {
  const auto folder = file.parent_path();
  const Fd fd(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) (void)::fsync(fd.get());
}

Status put_in_place(const fs::path& beside, const fs::path& file, Replace replace) {
  if (replace == Replace::any) {
    if (::rename(beside.c_str(), file.c_str()) != 0) return system_error("replace", file, errno);
    return {};
  }
  if (::link(beside.c_str(), file.c_str()) == 0) {
    ::unlink(beside.c_str());
    return {};
  }
  if (errno == EEXIST) return fail(TC_ERR_BUSY, "{} is there already", file.string());
  return system_error("create", file, errno);
}

}  // namespace

Result<Fd> open_guarded(const fs::path& file, Guard guard) {
  Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));  // O_NONBLOCK: a pipe must not block us
  if (!fd) return system_error("open", file, errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return system_error("open", file, errno);
  TC_CHECK(check(info, file, guard));
  return fd;
}

Result<std::string> read_guarded(const fs::path& file, Guard guard, size_t limit) {
  TC_ASSIGN(const auto fd, open_guarded(file, guard));
  std::string text;
  char piece[4096];
  for (;;) {
    const auto got = ::read(fd.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error("read", file, errno);
    if (got == 0) return text;
    if (text.size() + static_cast<size_t>(got) > limit)
      return fail(TC_ERR_TOO_LARGE, "{} has more than {} bytes, which is the most that it may have", file.string(),
                  limit);
    text.append(piece, static_cast<size_t>(got));
  }
}

Result<std::string> read_policy(const fs::path& file, size_t limit) {
  auto text = read_guarded(file, Guard::policy, limit);
  if (!text && text.error().code == TC_ERR_NOT_FOUND) return std::string();
  return text;
}

Status write_guarded(const fs::path& file, std::string_view text, Replace replace) {
  TC_CHECK(make_folder(file.parent_path()));
  std::error_code error;
  const auto place = fs::is_symlink(file, error) ? fs::weakly_canonical(file, error) : file;
  TC_ASSIGN(auto made, create_beside(place, 0600));
  struct stat old{};
  if (replace == Replace::any && ::stat(place.c_str(), &old) == 0)
    (void)::fchmod(made.fd.get(), old.st_mode & 0777 & ~writable_by_others);
  auto done = write_all(made.fd.get(), text, place);
  if (done) done = put_in_place(made.path, place, replace);
  if (!done) {
    ::unlink(made.path.c_str());
    return done;
  }
  sync_folder_of(place);
  return {};
}

Result<FileLock> FileLock::of(const fs::path& file) {
  TC_CHECK(make_folder(file.parent_path()));
  const auto name = fs::path(file.string() + ".lock");
  Fd fd(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return system_error("open", name, errno);
  const auto deadline = Deadline::after_ms(lock_ms);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return system_error("lock", name, errno);
    if (deadline.passed())
      return fail(TC_ERR_BUSY, "{} is being edited by another process for more than {} ms", file.string(), lock_ms);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return FileLock(std::move(fd));
}

void wipe(void* bytes, size_t size) noexcept { sodium_memzero(bytes, size); }

}  // namespace tc::trust
