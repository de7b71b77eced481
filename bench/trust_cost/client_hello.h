// SPDX-License-Identifier: Apache-2.0
//
// Half of a handshake, as a stranger would send it to make a node work: the first bytes of a client, over and over on
// new connections. The node answers with a key exchange and a signature, and the stranger leaves. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/clock.h"

namespace tc::bench {

// What one of our nodes sends first when it connects.
Result<Bytes> record_client_hello();

struct FloodCounts {
  std::atomic<uint64_t> answered{0}, refused{0};
};
// Until the deadline.
Status flood(const std::string& address, ByteView hello, Deadline deadline, FloodCounts& counts);

}  // namespace tc::bench
