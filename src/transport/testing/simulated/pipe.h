// SPDX-License-Identifier: Apache-2.0
//
// The state of the simulated network: pipes, one for each direction of a connection, and the listening nodes.
//
// Thread: any that holds SimulatedState::mutex. Nodes may be driven by one thread or by several.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/testing/simulated/simulated.h"

namespace tc::transport {

// A sleeping node. Lives as long as its transport, or a pipe that leads to it.
struct Sleeper {
  std::condition_variable condition;
  bool awake = false;  // wake() was called, or something came
};

struct Message {
  unsigned delay = 0;       // progress() calls of the receiver until the message arrives
  uint64_t arrives_ns = 0;  // not before, by Travel::now
  unsigned number = 0;      // in its direction, from 1
  bool cuts = false;        // the connection is lost after it
  Bytes bytes;
};

struct Pipe {
  // The most bytes in flight, as in the buffers of a socket.
  static constexpr size_t capacity = 1024 * 1024;

  std::string from, to;           // addresses
  std::optional<Bytes> greeting;  // comes first
  std::deque<Message> messages;
  std::optional<Error> end;  // comes last
  // When greeting, end, and what was sent last arrive, by Travel::now.
  uint64_t greeting_arrives_ns = 0, end_arrives_ns = 0, last_arrival_ns = 0;
  size_t bytes = 0;        // in `messages`
  unsigned sent = 0;       // messages so far
  unsigned taken = 0;      // the number of the last message that arrived
  bool cut = false;        // Faults::disconnect: nothing passes any more
  bool was_full = false;   // there was no room for what was sent last
  bool abandoned = false;  // the receiver has ended and reads no more
  std::shared_ptr<Sleeper> receiver, sender;
};

struct SimulatedState {
  // The network is at work, alone. No node's code runs meanwhile.
  struct Lock {
    explicit Lock(const SimulatedState& state) : lock(state.mutex) {}
    NetworkWork work;
    std::scoped_lock<std::mutex> lock;
  };
  struct Arrival {
    std::shared_ptr<Pipe> in, out;
    std::string from;
    Bytes hello;
    uint64_t arrives_ns = 0;
  };
  struct Listener {
    std::shared_ptr<Sleeper> sleeper;
    std::deque<Arrival> arrivals;
  };

  mutable std::mutex mutex;
  Faults faults;
  Travel travel;
  std::function<void(Deadline)> sleep;
  std::map<std::string, Listener, std::less<>> listeners;
  std::set<std::string, std::less<>> dead;  // addresses, until another node listens there
  // What nodes at these addresses prove; all others are of our own user.
  struct Proof {
    std::optional<trust::PublicKey> key;
    bool on_trusted_network = false;
  };
  std::map<std::string, Proof, std::less<>> proofs;
  std::vector<std::weak_ptr<Pipe>> pipes;
  unsigned next_port = 1;

  // All with the mutex held.
  std::shared_ptr<Pipe> make_pipe(std::shared_ptr<Sleeper> sender, std::shared_ptr<Sleeper> receiver, std::string from,
                                  std::string to);
  // When what leaves now arrives, behind all that left before; 0: at once.
  uint64_t arrival_of(Pipe& pipe, size_t bytes) const;
  // The receiver took something, or never will.
  void tell_sender(Pipe& pipe) const;
  bool has_arrived(uint64_t arrives_ns) const { return arrives_ns == 0 || arrives_ns <= travel.now(); }
  // Applies the faults. Returns how many bytes were taken.
  size_t send(Pipe& pipe, ByteView bytes);
  void end(Pipe& pipe, Error why);
  // The connection is lost: of what travels, so many parts of 256 arrive.
  void break_off(Pipe& pipe, unsigned parts);
  void cut_all();
  Origin origin_of(const std::string& address) const;
};

void notify(Sleeper& sleeper);

}  // namespace tc::transport
