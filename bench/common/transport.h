// SPDX-License-Identifier: Apache-2.0
//
// What --transport of a benchmark names: how our frames travel, and how those of UCX beside us do.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tc::bench {

using NodeSettings = std::vector<std::pair<const char*, std::string>>;

struct BenchTransport {
  std::string name;         // "shm", "tcp", "ucx-shm", "ucx-tcp"
  std::string tls;          // UCX_TLS for what stands beside us
  bool by_network = false;  // else through memory
  NodeSettings node_settings() const;

  static Result<BenchTransport> parse(const std::string& name);
};

// Names for an option's help and check.
std::vector<std::string> transport_names();

}  // namespace tc::bench
