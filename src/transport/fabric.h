// SPDX-License-Identifier: Apache-2.0
//
// The interface to the UCX plug-in, libthreechains_ucx.so: the only part of a node that uses UCX. It is loaded when the
// node is configured for it (base/plugin.h). Any other node never maps libucp and opens no port of UCX's.
//
// A fabric's connections greet on a socket, as all do, encrypted unless the peer's network is trusted. What UCX carries is
// never encrypted. UCX gets the peer's worker address only after the node has
// accepted the peer, because UCX trusts that address without a check.
//
// Thread: the node's.
#pragma once

#include <memory>
#include <string>

#include "transport/socket_connection.h"

namespace tc::transport {

struct FabricOptions {
  std::string tls;                    // as UCX_TLS; empty: from the environment, or UCX's default
  std::string devices;                // as UCX_NET_DEVICES; empty: from the environment
  bool puts = false;                  // use one-sided puts instead of Active Messages
  size_t ring_bytes = 256 * 1024;     // of the memory that a peer puts into
  size_t batch_bytes = 128 * 1024;    // frames coalesced into one active message or put
  size_t window_bytes = 1024 * 1024;  // sent to a peer and not yet acknowledged by it
};

class Fabric {
 public:
  virtual ~Fabric() = default;
  // A connection to a peer: `socket` connects to the first of its addresses, `others` are the rest.
  virtual Result<std::unique_ptr<SocketConnection>> connect(Fd socket, std::string address,
                                                            std::vector<SocketAddress> others, ByteView hello) = 0;
  // A connection from a peer that has greeted. Takes `stream` on success only.
  virtual Result<std::unique_ptr<SocketConnection>> accept(SocketStream& stream, const Origin& origin,
                                                           const Greeting& greeting) = 0;
  // Sends and receives what is due. Returns how much happened.
  virtual unsigned progress() noexcept = 0;
  // Call before a sleep. False: call progress() first. True: the descriptor will become readable when there is
  // something to do.
  virtual bool arm() noexcept = 0;
  virtual int event_descriptor() const noexcept = 0;
  // When a sleep must end so that progress() is called; 0: never.
  virtual uint64_t next_time() noexcept = 0;
  // Are there closed connections whose peers have not taken everything?
  virtual bool has_unfinished() const noexcept = 0;
};

// What the plug-in exports under `fabric_factory_name`. Null: the version differs, or `error` has the reason.
inline constexpr uint32_t fabric_plugin_version = 4;
inline constexpr const char* fabric_factory_name = "threechains_make_fabric";
using FabricFactory = Fabric* (*)(uint32_t version, const FabricOptions& options, Hub& hub, Error& error);

}  // namespace tc::transport
