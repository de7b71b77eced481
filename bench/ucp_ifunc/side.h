// SPDX-License-Identifier: Apache-2.0
//
// One process of the benchmark: a UCX program that owns its context, worker, endpoint and memory. Both ways to send go
// over the same endpoint, and both sides run the same code. Thread: one in each process.
#pragma once

#include <memory>
#include <string>

#include "ucp_ifunc/ucp_ifunc_bench.h"

namespace tc::bench {

enum class Way : uint8_t {
  am,            // an Active Message and its predeployed handler
  ifunc,         // an ifunc into a slot that is polled
  send_receive,  // an ifunc that worker progress alone runs
};

class Side {
 public:
  static Result<std::unique_ptr<Side>> create(const UcpIfuncOptions& options);
  ~Side();

  // Worker address, memory and its key, for the other side.
  Result<std::string> address();
  Status connect(const std::string& address);
  // Sends the code over, so that what is measured is cached: after connect(), on both sides at once.
  Status warm_up();
  // From now on messages have payloads of this size.
  Status use(size_t payload);

  // Round trips: one side begins, the other answers. Mean ns of one way.
  Result<double> ping(Way way, uint64_t rounds);
  Status pong(Way way, uint64_t rounds);
  // A stream: messages a second that ran at the target, as the source sees it.
  Result<double> send_stream(Way way, uint64_t messages);
  Status take_stream(Way way, uint64_t messages);

  // Slots in the ring of a stream, for the payload in use: `messages` above is a multiple of it, at least twice as much.
  uint64_t ring_slots() const noexcept;
  void progress() noexcept;

  struct State;

 private:
  explicit Side(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tc::bench
