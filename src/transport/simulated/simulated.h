// SPDX-License-Identifier: Apache-2.0
//
// A network inside one process, for tests: nodes find each other by any name given to listen(), and the test decides
// what goes wrong. Frames travel as on a socket, by the same streams; only the channel under them is simulated.
#pragma once

#include "transport/transport.h"

namespace tc::transport {

struct SimulatedState;

// What happens to the next messages (what one flush sends) from one node to another. Messages are counted per direction
// of a connection, from 1. Greetings and the end of a connection are no messages: they always arrive. Messages carry
// their number: one that is missing, or comes again, costs the connection, as the network below TCP would see to.
struct Faults {
  unsigned drop_every = 0;       // every n-th message vanishes; 0: none
  unsigned duplicate_every = 0;  // every n-th arrives twice
  unsigned truncate_every = 0;   // of every n-th the first half arrives, and then the connection is lost
  unsigned flip_every = 0;       // every n-th has one bit turned
  unsigned delay_progress = 0;   // messages arrive after so many progress() calls of the receiver
  bool disconnect = false;       // the peer is gone from now on; both sides see on_lost
};

class SimulatedNetwork {
 public:
  SimulatedNetwork();
  ~SimulatedNetwork();
  // A node's transport on this network, driven by whichever thread drives the node. The network must outlive it.
  std::unique_ptr<Transport> join(Events& events);
  // Applies to everything sent on the network from now on.
  void set_faults(const Faults& faults);
  // Who listens at `address` is another user's from now on: connections to it and from it have a foreign origin.
  void make_foreign(std::string address);
  // Bytes still on their way.
  size_t in_flight() const;

 private:
  std::unique_ptr<SimulatedState> state_;
};

}  // namespace tc::transport
