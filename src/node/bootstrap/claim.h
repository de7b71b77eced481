// SPDX-License-Identifier: Apache-2.0
//
// A number in a rendezvous directory, held by a file `node-N` and a lock on it for as long as its owner lives.
//
// The kernel drops the lock when the owner ends, also by kill -9: a file that nobody has locked is left over from an
// earlier run and worth nothing. That is how old files are told from new ones, without clocks or job names. Rules:
//   - a file is written and locked under another name, then linked to its own: so a reader never sees half of it;
//   - link() never replaces, so of two that want a number one gets it;
//   - only the holder of a file's lock may replace or remove the file's name.
// The locks are "open file description" locks: they work over NFS 4, and two nodes of one process exclude each other.
// A child made by fork() without exec shares the lock.
//
// Thread: one.
#pragma once

#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "node/bootstrap/record.h"

namespace tc::node::bootstrap {

class Claim {
 public:
  // Claims `record.id` in `directory`, replacing a file that is left over. TC_ERR_BUSY: a living node has it.
  // TC_ERR_DENIED: somebody else's file is in the way. TC_ERR_UNSUPPORTED: no links or locks on that file system.
  static Result<Claim> take(const std::filesystem::path& directory, const Record& record);
  Claim(Claim&&) noexcept = default;
  Claim& operator=(Claim&&) = delete;
  ~Claim();  // gives the number back

  // Says in the file that we know all others.
  Status mark_informed();
  // False when another node has replaced the file: the file system does not show our lock to its host.
  bool holds() const noexcept;
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  Claim(std::filesystem::path path, Fd file) : path_(std::move(path)), file_(std::move(file)) {}
  std::filesystem::path path_;
  Fd file_;
};

std::filesystem::path claim_path(const std::filesystem::path& directory, uint32_t id);

// What a look at another node's file showed.
struct Sight {
  enum class State { absent, left_over, unusable, alive } state = State::absent;
  Record record;     // when alive
  std::string flaw;  // when left over or unusable: a sentence's end, "its file ..."
};
// Believes only regular files that nobody but our user or root can have written, locked by somebody.
Sight look_at(const std::filesystem::path& path, uint32_t id);

// Does it belong to our user, or to root?
bool is_ours(const struct stat& file) noexcept;
// May its group or others write to it? Access lists count: their mask stands where the group's bits are.
bool others_can_write(const struct stat& file) noexcept;

}  // namespace tc::node::bootstrap
