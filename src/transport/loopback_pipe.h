// SPDX-License-Identifier: Apache-2.0
//
// The inside of the loopback network: pipes, one per direction of a connection, and who listens where. One lock
// guards it all; nodes may be driven by one thread or by several.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/loopback.h"

namespace tc::transport {

// A sleeping node. Lives as long as its transport, or a pipe that leads to it.
struct LoopbackSleeper {
  std::condition_variable condition;
  bool awake = false;  // wake() was called, or something came
};

enum class LoopbackMessageKind : uint8_t { batch, control, closed };

struct LoopbackMessage {
  LoopbackMessageKind kind;
  unsigned wait;    // progress() calls of the receiver until it arrives
  unsigned number;  // in its direction, from 1, as on the `am` way
  Bytes bytes;      // for `closed`, the reason
};

struct LoopbackPipe {
  std::deque<LoopbackMessage> messages;
  unsigned sent = 0;       // messages so far
  unsigned taken = 0;      // the number of the last one that arrived
  size_t controls = 0;     // control frames among `messages`
  bool cut = false;        // Faults::disconnect: nothing passes any more
  bool abandoned = false;  // the receiver is gone: nobody will read
  std::shared_ptr<LoopbackSleeper> receiver;
};

struct LoopbackState {
  struct Arrival {
    std::shared_ptr<LoopbackPipe> in, out;
    std::string from;
  };
  struct Listener {
    std::shared_ptr<LoopbackSleeper> sleeper;
    std::deque<Arrival> arrivals;
  };

  std::mutex mutex;
  Faults faults;
  std::map<std::string, Listener, std::less<>> listeners;
  std::vector<std::weak_ptr<LoopbackPipe>> pipes;
  unsigned next_port = 1;

  // All with the mutex held.
  std::shared_ptr<LoopbackPipe> make_pipe(std::shared_ptr<LoopbackSleeper> receiver);
  // Applies the faults. False when the pipe is cut or nobody is at its other end.
  bool send(LoopbackPipe& pipe, LoopbackMessageKind kind, ByteView bytes);
  void cut_all();
};

}  // namespace tc::transport
