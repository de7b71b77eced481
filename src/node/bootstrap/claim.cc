// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/claim.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/bytes.h"
#include "base/random.h"

namespace tc::node::bootstrap {

namespace {

namespace fs = std::filesystem;

enum class Lock { got, held, impossible };

// Which byte of a file is locked, and why. A process that replaces a file that was left over keeps others from doing the same, and must
// not look like the node that the file is of.
enum Byte : off_t { of_living_node = 0, of_replacement = 1 };

Lock try_lock(const Fd& file, Byte byte) noexcept {
  struct flock wish{};
  wish.l_type = F_WRLCK;
  wish.l_whence = SEEK_SET;
  wish.l_start = byte;
  wish.l_len = 1;
  if (::fcntl(file.get(), F_OFD_SETLK, &wish) == 0) return Lock::got;
  return errno == EAGAIN || errno == EACCES ? Lock::held : Lock::impossible;
}

// Asks without taking it, so as to be in nobody's way.
bool is_of_living_node(const Fd& file) noexcept {
  struct flock question{};
  question.l_type = F_RDLCK;
  question.l_whence = SEEK_SET;
  question.l_start = of_living_node;
  question.l_len = 1;
  return ::fcntl(file.get(), F_OFD_GETLK, &question) == 0 && question.l_type != F_UNLCK;
}

bool same_file(const struct stat& a, const struct stat& b) noexcept {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

// Is `file` what `path` stands for? Its inode cannot be used again while we have it open.
bool is_at(const Fd& file, const fs::path& path) noexcept {
  struct stat opened{}, named{};
  return ::fstat(file.get(), &opened) == 0 && ::lstat(path.c_str(), &named) == 0 && same_file(opened, named);
}

// A file under a name of its own, which is gone again with this object.
struct Draft {
  fs::path path;
  Fd file;
  Draft(fs::path where, Fd opened) : path(std::move(where)), file(std::move(opened)) {}
  Draft(Draft&&) = delete;
  ~Draft() {
    if (!path.empty()) ::unlink(path.c_str());
  }
};

std::string random_name() { return fmt::format(".draft-{:016x}", random_number()); }

std::unexpected<Error> impossible(const char* what, const fs::path& path) {
  return fail(TC_ERR_UNSUPPORTED, "{} at {}: {}; a rendezvous directory needs a file system with hard links and locks",
              what, path.string(), system_words(errno));
}

Status write_draft(const Draft& draft, std::string_view text) {
  if (try_lock(draft.file, of_living_node) != Lock::got) return impossible("locking a file", draft.path);
  if (::pwrite(draft.file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::fsync(draft.file.get()) != 0)
    return fail(TC_ERR_IO, "writing {}: {}", draft.path.string(), system_words(errno));
  return {};
}

// Whether the name `path` now stands for the draft; false: look again, something changed meanwhile.
Result<bool> replace_left_over(const Draft& draft, const fs::path& path) {
  const Fd old(::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!old && errno == ENOENT) return false;
  if (!old) return fail(TC_ERR_DENIED, "{} is in the way: {}", path.string(), system_words(errno));
  struct stat ours{}, theirs{};
  if (::fstat(draft.file.get(), &ours) != 0 || ::fstat(old.get(), &theirs) != 0)
    return fail(TC_ERR_IO, "looking at {}: {}", path.string(), system_words(errno));
  if (same_file(ours, theirs)) return true;  // NFS may report a link() that it made as one that exists
  if (!S_ISREG(theirs.st_mode)) return fail(TC_ERR_DENIED, "{} is in the way: it is no regular file", path.string());
  if (ours.st_uid != theirs.st_uid)
    return fail(TC_ERR_DENIED, "{} is in the way: it belongs to user {} when ours belong to {}", path.string(),
                theirs.st_uid, ours.st_uid);
  if (is_of_living_node(old)) return fail(TC_ERR_BUSY, "a living node has {}", path.string());
  switch (try_lock(old, of_replacement)) {
    case Lock::held: return fail(TC_ERR_BUSY, "a living node has {}", path.string());
    case Lock::impossible: return impossible("locking a file", path);
    case Lock::got: break;
  }
  if (!is_at(old, path)) return false;
  if (::rename(draft.path.c_str(), path.c_str()) != 0)
    return fail(TC_ERR_IO, "replacing {}: {}", path.string(), system_words(errno));
  return true;
}

}  // namespace

fs::path claim_path(const fs::path& directory, uint32_t id) { return directory / fmt::format("node-{}", id); }

Result<Claim> Claim::take(const fs::path& directory, const Record& record) {
  const auto path = claim_path(directory, record.id);
  const auto beside = directory / random_name();
  Draft draft(beside, Fd(::open(beside.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)));
  if (!draft.file) return fail(TC_ERR_IO, "creating {}: {}", beside.string(), system_words(errno));
  TC_CHECK(write_draft(draft, encode(record)));
  constexpr int most_tries = 100;  // each was lost to a node that came or went in that very moment
  for (int tries = 0; tries < most_tries; ++tries) {
    if (::link(beside.c_str(), path.c_str()) == 0) return Claim(path, std::move(draft.file));
    if (errno != EEXIST) return impossible("linking a file", path);
    TC_ASSIGN(const bool done, replace_left_over(draft, path));
    if (done) return Claim(path, std::move(draft.file));
  }
  return fail(TC_ERR_BUSY, "{} changes hands all the time", path.string());
}

Claim::~Claim() {
  if (file_ && holds()) ::unlink(path_.c_str());
}

Status Claim::mark_informed() {
  if (::pwrite(file_.get(), &informed_mark, 1, informed_offset) != 1 || ::fsync(file_.get()) != 0)
    return fail(TC_ERR_IO, "writing {}: {}", path_.string(), system_words(errno));
  return {};
}

bool Claim::holds() const noexcept { return is_at(file_, path_); }

bool is_ours(const struct stat& file) noexcept { return file.st_uid == ::geteuid() || file.st_uid == 0; }

bool others_can_write(const struct stat& file) noexcept { return (file.st_mode & (S_IWGRP | S_IWOTH)) != 0; }

Sight look_at(const fs::path& path, uint32_t id) {
  const auto flawed = [](Sight::State state, std::string flaw) { return Sight{state, {}, std::move(flaw)}; };
  using enum Sight::State;
  const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return {};
  struct stat theirs{};
  if (!file || ::fstat(file.get(), &theirs) != 0)
    return flawed(unusable, fmt::format("its file cannot be read: {}", system_words(errno)));
  if (!S_ISREG(theirs.st_mode)) return flawed(unusable, "its file is no regular file");
  if (!is_ours(theirs))
    return flawed(unusable, fmt::format("its file belongs to user {} when this node runs as user {}", theirs.st_uid,
                                        ::geteuid()));
  if (others_can_write(theirs))
    return flawed(unusable, fmt::format("its file has mode {:04o}, so other users could have written it",
                                        theirs.st_mode & 07777));
  if (!is_of_living_node(file)) return flawed(left_over, "its file is left over from a process that has ended");
  char text[max_record_bytes + 1];
  const auto size = ::pread(file.get(), text, sizeof text, 0);
  if (size < 0) return flawed(unusable, fmt::format("its file cannot be read: {}", system_words(errno)));
  auto record = decode({text, static_cast<size_t>(size)});
  if (!record) return flawed(unusable, fmt::format("its file holds {}", record.error().message));
  if (record->id != id) return flawed(unusable, fmt::format("its file is that of node {}", record->id));
  return {alive, std::move(*record), {}};
}

}  // namespace tc::node::bootstrap
