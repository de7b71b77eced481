// SPDX-License-Identifier: Apache-2.0
//
// Nodes of a benchmark, through the public API: their transports, their key, and how they are made and connected.
// Thread: the one that drives the node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "ifunc/attempt.h"

namespace tc::bench {

using NodeSettings = std::vector<std::pair<const char*, std::string>>;

// The values of a benchmark's --transport: each names the transport of our nodes, and UCX_TLS for the UCX program
// beside. Nodes of a benchmark call the loopback device and the namespaces of network.h trusted, so that they compare
// transports without encryption. With "tls" they do not: they connect as nodes on different hosts do.
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

// One key for all nodes of a benchmark, in all its processes: nodes with the same key trust each other, so that the
// benchmark needs no keyring, and leaves the user's own keys alone. The process that measures makes it before it starts
// the others, which find it in the environment.
class SharedKey {
 public:
  static Result<SharedKey> make();

 private:
  explicit SharedKey(TemporaryDirectory directory) : directory_(std::move(directory)) {}
  TemporaryDirectory directory_;  // goes with it
};

// Empty: there is none.
std::string shared_key_file();

inline constexpr threechains::milliseconds connect_limit{10'000};

// A node with these settings.
Result<threechains::Node> make_node(const NodeSettings& settings);
// The same, behind the settings that its transport needs.
Result<threechains::Node> make_node(const BenchTransport& transport, const NodeSettings& settings);

// Connects. A connection that is not encrypted when the transport is, or the other way round, is an error: it would be
// measured as what it is not.
Result<threechains::Endpoint> connect(threechains::Node& node, const std::string& address, bool encrypted);

// Where a server of a benchmark stands. Servers find each other in a directory (docs/bootstrap.md), so that each can
// listen on any free port.
struct ServerPlace {
  BenchTransport transport;
  std::string host;        // to listen on
  std::string rendezvous;  // a directory for the nodes of this cluster alone; its parent exists
  uint32_t index = 0, count = 0;
};
// The settings of its node, with `further` ones. The node is made when those of all servers have met.
Result<threechains::Node> make_server(const ServerPlace& place, const NodeSettings& further = {});

// Drives the node until all code that it holds is compiled for this CPU; TC_ERR_TIMEOUT after 30 s.
Status wait_until_tuned(threechains::Node& node);

// The `index`-th of comma-separated addresses.
std::string element(const std::string& list, uint32_t index);

}  // namespace tc::bench
