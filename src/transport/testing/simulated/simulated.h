// SPDX-License-Identifier: Apache-2.0
//
// A network inside one process, for tests: nodes connect to any name given to listen(), and the test chooses the
// faults. Frames are sent by the same streams as on a socket; only the channel under them is simulated.
//
// Thread: any.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "transport/transport.h"

namespace tc::transport {

struct SimulatedState;

// While one lives, what this thread allocates is the network's own and no node's: a test in which allocations of nodes
// fail lets those of the network succeed.
class NetworkWork {
 public:
  NetworkWork() noexcept;
  ~NetworkWork();
  NetworkWork(const NetworkWork&) = delete;
  NetworkWork& operator=(const NetworkWork&) = delete;
  static bool is_on() noexcept;
};

// What happens to the next messages from one node to another. A message is what one flush sends. Messages are counted
// for each direction of a connection, from 1. Greetings and the end of a connection are no messages: they always
// arrive. The receiver checks the numbers: a missing or repeated message ends the connection, because TCP would never
// deliver it so.
struct Faults {
  unsigned drop_every = 0;       // every n-th message vanishes; 0: none
  unsigned duplicate_every = 0;  // every n-th arrives twice
  unsigned truncate_every = 0;   // of every n-th the first half arrives, and then the connection is lost
  unsigned flip_every = 0;       // every n-th has one bit turned
  unsigned delay_progress = 0;   // messages arrive after this number of progress() calls of the receiver
  bool disconnect = false;       // the peer is gone from now on; both sides see on_lost
};

// How long what is sent travels, by a clock of the test's. Without it, everything arrives at once.
struct Travel {
  std::function<uint64_t()> now;
  // When so many bytes that leave now arrive: never before those that left earlier in the same direction of a connection.
  std::function<uint64_t(std::string_view from, std::string_view to, size_t bytes)> arrival;
  // Told that the node at this address will have something to do then: something arrives, or a full direction has room
  // again. A test that runs many nodes runs those that have something to do. Called with the network locked. Empty: nobody
  // is told.
  std::function<void(std::string_view node, uint64_t at_ns)> due = {};
};

class SimulatedNetwork {
 public:
  SimulatedNetwork();
  ~SimulatedNetwork();
  // Makes a node's transport on this network. The network must outlive it.
  std::unique_ptr<Transport> join(Events& events);
  // Applies to everything sent on the network from now on.
  void set_faults(const Faults& faults);
  void set_travel(Travel travel);
  // A node that sleeps calls this, until the deadline at most, instead of waiting on its thread.
  void set_sleep(std::function<void(Deadline)> sleep);
  // All connections between the two are lost, at any byte: of what travels, the first so many parts of 256 arrive.
  void break_off(std::string_view one, std::string_view other, unsigned parts);
  // The node at `address` has died, whatever its object still does: it loses all its connections so, and has no others.
  void die(std::string address, unsigned parts);
  // From now on the node at `address` is not of our own user: new connections to and from it have this key as their
  // origin. Without a key its origin proves nothing.
  void make_foreign(std::string address, std::optional<trust::PublicKey> key = {});
  // From now on the node at `address` is on a network that others trust.
  void make_trusted_network(std::string address);
  // Bytes that were sent and not received.
  size_t in_flight() const;

 private:
  std::unique_ptr<SimulatedState> state_;
};

}  // namespace tc::transport
