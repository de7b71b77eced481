// SPDX-License-Identifier: Apache-2.0
//
// The baseline: target-side increment as a predeployed UCX Active Message, written as a good UCX program would be.
// The handler finds its function in a table by the index in the AM header (main paper, section IV.A).
// Thread: one in each process.
#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace tc::bench {

class AmPeer {
 public:
  static constexpr int batch = 64;
  static constexpr size_t header_bytes = 8;

  // `tls`: UCX_TLS for this context alone.
  static Result<std::unique_ptr<AmPeer>> create(const std::string& tls);
  ~AmPeer();

  // Hexadecimal, for the other process.
  std::string address() const;
  Status connect(const std::string& address);

  // One call: 8 bytes of header, 1 byte of payload, eager.
  void send();
  // 64 calls of 16 bytes each in one message.
  void send_batch();
  void progress();
  // Calls that ran here so far.
  uint64_t count() const noexcept;

  // What finding and calling the handler's function costs, without any transport: ns per call.
  double dispatch_ns(uint64_t calls);

 private:
  struct State;
  explicit AmPeer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tc::bench
