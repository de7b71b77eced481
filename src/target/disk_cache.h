// SPDX-License-Identifier: Apache-2.0
//
// Compiled objects that outlive the process: a directory of files, each named by the SHA-256 of its key. The key
// says everything that the object depends on (content id, slice, triple, Jit::fingerprint()).
//
// A cached object is code that will run here, so the directory must belong to this user and nobody else may be
// able to write to it. Inside it every entry is still checked when it is read: one that is damaged, cut short or
// another format's is a miss and is removed, never a failure. An entry is replaced as a whole, so that several
// processes may share a directory. There is no lock: at worst an object is compiled once too often.
//
// Threads: any; calls may overlap.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace tc::target {

class DiskCache {
 public:
  static constexpr size_t default_limit = 256u * 1024 * 1024;

  // Opens `directory`, made with mode 0700 (and its parents with the usual one) when it is missing. `limit_bytes`
  // bounds what all entries take together; it stops a disk from filling up.
  // TC_ERR_DENIED: owned by another user, or others can write to it. TC_ERR_IO: cannot be made or written. The
  // caller warns once and goes on without a cache.
  static Result<std::unique_ptr<DiskCache>> open(const std::filesystem::path& directory,
                                                 size_t limit_bytes = default_limit);
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // What was stored under exactly this key, and marks it as used now. Empty on a miss.
  std::optional<Bytes> find(std::string_view key) noexcept;

  // Keeps `payload` under `key`, in place of what was there, and removes the entries that were used longest ago
  // when the limit is passed. An error (disk full, larger than the limit) leaves the cache as usable as it was.
  Status store(std::string_view key, ByteView payload);

  // Forgets a key: for an object that turned out not to link.
  void remove(std::string_view key) noexcept;

  // Bytes that the entries take, as far as this process knows.
  size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

  // The file name of a key's entry, for tests and tools.
  static std::string file_name(std::string_view key);

 private:
  DiskCache(int directory, size_t limit) noexcept : directory_(directory), limit_(limit) {}

  std::filesystem::path path_of(std::string_view key) const;
  void shrink(size_t goal) noexcept;

  const int directory_;  // every access goes through this descriptor: the directory that was checked, whatever its name
  const size_t limit_;
  std::atomic<size_t> bytes_{0};
  std::atomic<unsigned> stores_{0};
};

}  // namespace tc::target
