// SPDX-License-Identifier: Apache-2.0
#include "target/disk_cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "base/clock.h"
#include "base/content_id.h"
#include "base/file.h"

namespace tc::target {

namespace {

namespace fs = std::filesystem;

// The head of an entry; the payload follows. A change of this layout is a change of the magic number.
//   0  8   "TCCODE01"
//   8  8   size of the payload
//  16  32  SHA-256 of the key
//  48  32  SHA-256 of the payload
constexpr std::string_view magic = "TCCODE01";
constexpr size_t header_size = 80;
constexpr std::string_view suffix = ".tcobj";
// A writer that died leaves its unfinished file behind; one that lives needs less than this.
constexpr time_t abandoned_after_s = 3600;
// Other processes add entries too: count them all again this often.
constexpr unsigned stores_between_counts = 64;

struct Entry {
  std::string name;
  size_t size;
  timespec used;
};

std::unexpected<Error> system_error(std::string_view verb, const fs::path& path) {
  return fail(TC_ERR_IO, "cannot {} the code cache {}: {}", verb, path.string(), std::strerror(errno));
}

Status check_owner(int directory, const fs::path& path) {
  struct stat info{};
  if (::fstat(directory, &info) != 0) return system_error("look at", path);
  if (info.st_uid != ::geteuid())
    return fail(TC_ERR_DENIED, "the code cache {} belongs to user {} when this process runs as {}", path.string(),
                info.st_uid, ::geteuid());
  if (info.st_mode & (S_IWGRP | S_IWOTH))
    return fail(TC_ERR_DENIED, "the code cache {} has mode {:04o}: others could put code into it; make it 0700",
                path.string(), info.st_mode & 07777u);
  if (::faccessat(directory, ".", W_OK | X_OK, AT_EACCESS) != 0) return system_error("write to", path);
  return {};
}

Bytes encode(std::string_view key, ByteView payload) {
  Bytes entry;
  entry.reserve(header_size + payload.size());
  Writer(entry)
      .bytes(as_bytes(magic))
      .u64(payload.size())
      .bytes(ContentId::of(as_bytes(key)).bytes)
      .bytes(ContentId::of(payload).bytes)
      .bytes(payload);
  return entry;
}

// The payload of an entry that is sound and belongs to the key.
std::optional<Bytes> decode(std::string_view key, ByteView entry) {
  Reader reader(entry);
  const auto found_magic = reader.bytes(magic.size());
  const auto size = reader.u64();
  const auto key_hash = ContentId::from(reader.bytes(32));
  const auto payload_hash = ContentId::from(reader.bytes(32));
  if (!reader.ok() || as_text(found_magic) != magic || size != reader.remaining()) return std::nullopt;
  const auto payload = reader.rest();
  if (key_hash != ContentId::of(as_bytes(key)) || payload_hash != ContentId::of(payload)) return std::nullopt;
  return Bytes(payload.begin(), payload.end());
}

bool older(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

// All entries, oldest use first; removes what dead writers left behind.
std::vector<Entry> list_entries(int directory, const fs::path& path) {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    const auto name = it->path().filename().string();
    struct stat info{};
    if (::fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    if (name.ends_with(suffix)) {
      entries.push_back({name, static_cast<size_t>(info.st_size), info.st_mtim});
    } else if (name.ends_with(".new") && name.find(suffix) != name.npos &&
               info.st_mtim.tv_sec + abandoned_after_s < wall_clock_s()) {
      ::unlinkat(directory, name.c_str(), 0);
    }
  }
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) { return older(a.used, b.used); });
  return entries;
}

// A path to the open directory, whatever happens to its name.
fs::path path_to(int directory) { return fmt::format("/proc/self/fd/{}", directory); }

}  // namespace

std::string DiskCache::file_name(std::string_view key) {
  return ContentId::of(as_bytes(key)).hex() + std::string(suffix);
}

Result<std::unique_ptr<DiskCache>> DiskCache::open(const fs::path& directory, size_t limit_bytes) {
  std::error_code error;
  if (directory.has_parent_path()) fs::create_directories(directory.parent_path(), error);
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return system_error("make", directory);
  const int opened = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (opened < 0) return system_error("open", directory);
  std::unique_ptr<DiskCache> cache(new DiskCache(opened, limit_bytes));
  TC_CHECK(check_owner(opened, directory));
  cache->shrink(limit_bytes);
  return cache;
}

DiskCache::~DiskCache() { ::close(directory_); }

fs::path DiskCache::path_of(std::string_view key) const { return path_to(directory_) / file_name(key); }

std::optional<Bytes> DiskCache::find(std::string_view key) noexcept try {
  const auto name = file_name(key);
  struct stat info{};
  if (::fstatat(directory_, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  std::optional<Bytes> payload;
  // Nothing of ours is a link or a pipe, and opening a pipe would wait.
  if (S_ISREG(info.st_mode)) {
    if (auto entry = read_file(path_to(directory_) / name, limit_)) payload = decode(key, *entry);
  }
  if (!payload) {
    ::unlinkat(directory_, name.c_str(), 0);
    return std::nullopt;
  }
  ::utimensat(directory_, name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return payload;
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

Status DiskCache::store(std::string_view key, ByteView payload) {
  const auto size = header_size + payload.size();
  if (size > limit_)
    return fail(TC_ERR_TOO_LARGE, "a code cache entry would be {} bytes when the cache may hold {}", size, limit_);
  TC_CHECK(write_file_atomically(path_of(key), encode(key, payload)));
  const auto now = bytes_.fetch_add(size) + size;
  // Some room is made at once, so that a full cache does not list its directory for every entry.
  if (now > limit_) {
    shrink(limit_ - limit_ / 8);
  } else if (stores_.fetch_add(1) % stores_between_counts == stores_between_counts - 1) {
    shrink(limit_);
  }
  return {};
}

void DiskCache::remove(std::string_view key) noexcept { ::unlinkat(directory_, file_name(key).c_str(), 0); }

// Removes the entries used longest ago until at most `goal` bytes are left, if there are more than the limit.
void DiskCache::shrink(size_t goal) noexcept try {
  const auto entries = list_entries(directory_, path_to(directory_));
  size_t total = 0;
  for (const auto& entry : entries) total += entry.size;
  if (total > limit_) {
    for (const auto& entry : entries) {
      if (total <= goal) break;
      if (::unlinkat(directory_, entry.name.c_str(), 0) == 0) total -= entry.size;
    }
  }
  bytes_ = total;
} catch (const std::bad_alloc&) {
  // Too little memory to list the directory: the next store tries again.
}

}  // namespace tc::target
