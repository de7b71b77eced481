// SPDX-License-Identifier: Apache-2.0
//
// The floor below everything that is measured: two processes that exchange bytes without any runtime.
// Thread: one in each process.
#pragma once

#include <memory>
#include <string>

#include "common/ping.h"
#include "floor/raw_memory.h"
#include "floor/raw_socket.h"

namespace tc::bench {

struct Floor {
  std::unique_ptr<RawMemory> memory;  // on every transport: its flags tell how far the two CPUs are from each other
  std::unique_ptr<RawSocket> socket;  // over a network only

  // One process offers, the other one opens what addresses() says, and then the first one accepts.
  static Result<Floor> offer(bool by_network);
  std::string addresses() const;  // two words
  static Result<Floor> open(const std::string& memory_address, const std::string& socket_address);
  Status accept();
};

// A socket's calls leave at once. For ping(), pong() and poll_until_count(), as the flags and the rings are.
struct BySocket {
  RawSocket& peer;
  void send() {
    peer.send();
    peer.flush();
  }
  void poll() { peer.poll(); }
  uint64_t count() const { return peer.count(); }
  Status status() const { return peer.status(); }
};

}  // namespace tc::bench
