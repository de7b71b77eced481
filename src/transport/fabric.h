// SPDX-License-Identifier: Apache-2.0
//
// The seam to UCX. Behind it stands libthreechains_ucx.so, the only part of a node that knows UCX; it is loaded when the
// node is configured for it (base/plugin.h), so a node that is not never maps libucp and opens no port of UCX's.
//
// A fabric's connections greet on a socket, as all do. Only then, and only when the node has accepted the peer, is the
// peer's worker address given to UCX: UCX believes it as it is.
//
// Thread: the node's.
#pragma once

#include <memory>
#include <string>

#include "transport/socket_connection.h"

namespace tc::transport {

struct FabricOptions {
  std::string tls;                    // as UCX_TLS; empty: what the environment and UCX's defaults say
  std::string devices;                // as UCX_NET_DEVICES; empty: what the environment says
  bool puts = false;                  // frames go by one-sided puts, not by Active Messages
  size_t ring_bytes = 256 * 1024;     // of the memory that a peer puts into
  size_t batch_bytes = 128 * 1024;    // frames coalesced into one active message or put
  size_t window_bytes = 1024 * 1024;  // frames on their way to a peer without its credit
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  // A connection to a peer: `socket` connects to the first of its addresses, `others` are the rest.
  virtual Result<std::unique_ptr<SocketConnection>> connect(Fd socket, std::string address,
                                                            std::vector<SocketAddress> others, ByteView hello) = 0;
  // A peer that has connected and greeted. Takes `socket` when all is well.
  virtual Result<std::unique_ptr<SocketConnection>> accept(Fd& socket, const Origin& origin,
                                                           const Greeting& greeting) = 0;
  // Sends and takes in what is due. Returns how much happened.
  virtual unsigned progress() noexcept = 0;
  // Before a sleep: false when there is something to do first. Afterwards the descriptor becomes readable when there is.
  virtual bool arm() noexcept = 0;
  virtual int event_descriptor() const noexcept = 0;
  // When a sleep has to end by itself; 0: never.
  virtual uint64_t next_time() noexcept = 0;
};

// What the plug-in exports under `fabric_factory_name`. Null when the version differs, or with the reason in `error`.
inline constexpr uint32_t fabric_plugin_version = 1;
inline constexpr const char* fabric_factory_name = "threechains_make_fabric";
using FabricFactory = Fabric* (*)(uint32_t version, const FabricOptions& options, Hub& hub, Error& error);

}  // namespace tc::transport
