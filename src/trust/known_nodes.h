// SPDX-License-Identifier: Apache-2.0
//
// The keys of nodes that this user connected to, by address. The file is like ssh's known_hosts. Each line is one node:
// "10.0.0.7:7001 ed25519:...". The first key that answers at an address is remembered. From then on, another key at
// this address is refused. All spellings of an address are the same address.
//
// Threads: any. An edit locks the file against other processes and threads, so it may block.
#pragma once

#include <filesystem>
#include <optional>

#include "base/result.h"
#include "trust/key_pair.h"

namespace tc::trust {

// The one spelling that stands for all spellings of an address: "127.0.0.1:7001" for "localhost:7001", "127.1:7001",
// "[::ffff:127.0.0.1]:7001" and "127.000.000.001:7001". Text that is no address of a socket does not change. Asks no
// name server.
std::string canonical_address(std::string_view address);

class KnownNodes {
 public:
  explicit KnownNodes(std::filesystem::path file) : file_(std::move(file)) {}

  // The key of that address. Nothing: no key is known. TC_ERR_INVALID names the malformed line.
  Result<std::optional<PublicKey>> find(std::string_view address) const;
  // TC_ERR_BUSY: the file has another key for this address.
  Status remember(std::string_view address, const PublicKey& key) const;
  // False: the address was not known.
  Result<bool> forget(std::string_view address) const;
  const std::filesystem::path& file() const noexcept { return file_; }

 private:
  std::filesystem::path file_;
};

}  // namespace tc::trust
