// SPDX-License-Identifier: Apache-2.0
//
// The keys of nodes that were connected to, by address, as ssh's known_hosts: one line each, "10.0.0.7:7001 ed25519:...".
// The first key that answers at an address is remembered, another one is refused from then on.
//
// Thread: any; an edit locks the file against other processes.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "trust/public_key.h"

namespace tc::trust {

class KnownNodes {
 public:
  explicit KnownNodes(std::filesystem::path file) : file_(std::move(file)) {}

  // The key that is known for that address; nothing: none is. TC_ERR_INVALID: the file has a line that is none, named.
  Result<std::optional<PublicKey>> find(std::string_view address) const;
  // TC_ERR_BUSY: another key is there meanwhile.
  Status remember(std::string_view address, const PublicKey& key) const;
  // False: it was not known.
  Result<bool> forget(std::string_view address) const;
  const std::filesystem::path& file() const noexcept { return file_; }

 private:
  std::filesystem::path file_;
};

}  // namespace tc::trust
