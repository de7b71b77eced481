// SPDX-License-Identifier: Apache-2.0
//
// The keys of nodes that were connected to, by address, as ssh's known_hosts: one line each, "10.0.0.7:7001 ed25519:...".
// Spellings of one address are one address.
// The first key that answers at an address is remembered, another one is refused from then on.
//
// Thread: any; an edit locks the file against other processes.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "trust/public_key.h"

namespace tc::trust {

// One spelling of an address, of the many that it has: "127.0.0.1:7001" for "localhost:7001", "127.1:7001",
// "[::ffff:127.0.0.1]:7001" and "127.000.000.001:7001". What is no address of a socket stays as it is. No name server is
// asked.
std::string canonical_address(std::string_view address);

class KnownNodes {
 public:
  explicit KnownNodes(std::filesystem::path file) : file_(std::move(file)) {}

  // The key that is known for that address; nothing: no key is known. TC_ERR_INVALID: a line of the file cannot be
  // read; the text names it.
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
