// SPDX-License-Identifier: Apache-2.0
//
// The values of a benchmark's --transport: each names the transport of our nodes, and UCX_TLS for the UCX program beside.
//
// Nodes of a benchmark call the loopback device and the namespaces of network.h trusted, so that they compare transports
// without encryption. With "tls" they do not: they connect as nodes on different hosts do.
//
// Threads: any.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tc::bench {

using NodeSettings = std::vector<std::pair<const char*, std::string>>;

struct BenchTransport {
  std::string name;         // "shm", "tcp", "tls", "ucx-shm", "ucx-tcp"
  std::string ucx_tls;      // UCX_TLS for what stands beside us
  bool by_network = false;  // else through memory

  bool encrypted() const noexcept { return name == "tls"; }
  // The same without encryption.
  BenchTransport plain() const;
  NodeSettings node_settings() const;

  static Result<BenchTransport> parse(const std::string& name);
};

// Names for an option's help and check.
std::vector<std::string> transport_names();

}  // namespace tc::bench
