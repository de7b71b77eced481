// SPDX-License-Identifier: Apache-2.0
//
// Bootstrap by a directory that all hosts see: each node has a file in it as long as it lives (claim.h).
//
// The directory vouches for the addresses and keys in it, so nobody else may write to it: it and the files in it are our
// user's or root's, and neither group nor others may write.
//
// meet() returns when everybody knows everybody, not only when we do: a node that ends at once would otherwise take
// its file away before slow ones have read it.
#pragma once

#include <filesystem>

#include "node/bootstrap/bootstrap.h"
#include "node/bootstrap/claim.h"

namespace tc::node::bootstrap {

class Directory final : public Bootstrap {
 public:
  explicit Directory(const Options& options)
      : directory_(options.directory), count_(options.nodes), timeout_ms_(options.timeout_ms) {}
  Result<Cluster> meet(const Contact& self, std::optional<uint32_t> id, Deadline deadline) override;

 private:
  struct Peer {
    std::string address;  // empty: not seen yet
    trust::PublicKey key;
    bool informed = false;  // it knows all others, or is gone again
    std::string flaw;       // why its file is worth nothing
  };
  Status prepare() const;
  Status claim(const Contact& self, std::optional<uint32_t> id);
  Status look_at_all();
  Status take_in(uint32_t id, Sight sight);
  Error missing() const;

  const std::filesystem::path directory_;
  const uint32_t count_;
  const uint32_t timeout_ms_;
  Record own_;
  std::optional<Claim> claim_;
  std::vector<Peer> peers_;
};

}  // namespace tc::node::bootstrap
