// SPDX-License-Identifier: Apache-2.0
//
// When each key was last used: the file `last-uses`, one line each, "ed25519:... 2026-11-25T13:10:00Z". It decides nothing;
// `ifunc key list` shows it.
//
// Thread: any; an edit locks the file against other processes. Both may block.
#pragma once

#include <filesystem>
#include <map>

#include "base/result.h"
#include "trust/grant.h"

namespace tc::trust {

using UseTimes = std::map<PublicKey, Time>;

class LastUses {
 public:
  explicit LastUses(std::filesystem::path file) : file_(std::move(file)) {}

  // A file that is not there has none. TC_ERR_INVALID: a line is malformed; it is named.
  Result<UseTimes> read() const;
  // The later time of a key counts, as several nodes may write the file. One that is malformed is begun anew. The oldest
  // lines go when it gets too large.
  Status record(const UseTimes& uses) const;
  const std::filesystem::path& file() const noexcept { return file_; }

 private:
  std::filesystem::path file_;
};

}  // namespace tc::trust
