// SPDX-License-Identifier: Apache-2.0
//
// The file `last-uses`: when each key was last used. A line is "ed25519:... 2026-11-25T13:10:00Z". `ifunc key list`
// shows these times; no decision depends on them.
//
// Threads: any. Both functions may block; record() locks the file against other processes and threads.
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

  // A missing file holds no times. TC_ERR_INVALID names the malformed line.
  Result<UseTimes> read() const;
  // Adds these times to the file. Several nodes may write it, so the later time of a key wins. A malformed file is
  // replaced. A file that is too large loses its oldest lines.
  Status record(const UseTimes& uses) const;
  const std::filesystem::path& file() const noexcept { return file_; }

 private:
  std::filesystem::path file_;
};

}  // namespace tc::trust
