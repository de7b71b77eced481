// SPDX-License-Identifier: Apache-2.0
//
// The values of a benchmark's --transport: each names the transport of our nodes, and UCX_TLS for the UCX program beside.
// Threads: any.
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
