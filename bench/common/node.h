// SPDX-License-Identifier: Apache-2.0
//
// Nodes of a benchmark, through the public API. Thread: the one that drives the node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "capi/attempt.h"
#include "common/transport.h"

namespace tc::bench {

inline constexpr threechains::milliseconds connect_limit{10'000};

// A node with these settings.
Result<threechains::Node> make_node(const NodeSettings& settings);
// The same, behind the settings that its transport needs.
Result<threechains::Node> make_node(const BenchTransport& transport, const NodeSettings& settings);

// Connects. A connection that is not encrypted when the transport is, or the other way round, is an error: it would be
// measured as what it is not.
Result<threechains::Endpoint> connect(threechains::Node& node, const std::string& address, bool encrypted);

// Where a server of a benchmark stands. Servers find each other in a directory (docs/bootstrap.md), so that each can listen
// on any free port.
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
