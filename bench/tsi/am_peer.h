// SPDX-License-Identifier: Apache-2.0
//
// The baseline: target-side increment as a predeployed UCX Active Message, written as a good UCX program would be.
// The handler finds its function in a table by the index in the AM header (main paper, section IV.A).
// Thread: one in each process.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "common/ucx_party.h"

namespace tc::bench {

class AmPeer {
 public:
  static constexpr int batch = 64;
  static constexpr size_t header_bytes = 8;

  // `tls`: UCX_TLS for this context alone.
  static Result<std::unique_ptr<AmPeer>> create(const std::string& tls);
  Result<std::string> address() const { return party_->address(); }
  Status connect(const std::string& address);

  // One call: 8 bytes of header, 1 byte of payload, eager.
  void send();
  // 64 calls of 16 bytes each in one message.
  void send_batch();
  void poll() { party_->progress(); }
  // Calls that ran here so far.
  uint64_t count() const noexcept { return *const_cast<const volatile uint64_t*>(&count_); }
  Status status() const { return {}; }
  // What finding and calling the handler's function costs, without any transport: ns per call.
  double dispatch_ns(uint64_t calls);

 private:
  using Function = void (*)(void* payload, size_t size, void* args);
  // One call inside a batch: as long as one of our frames with a payload of one byte.
  struct BatchedCall {
    uint64_t index;
    uint8_t payload;
    uint8_t padding[7];
  };
  static_assert(sizeof(BatchedCall) == 16);

  AmPeer();
  static ucs_status_t on_single(void* self, const void* header, size_t header_size, void* data, size_t size,
                                const ucp_am_recv_param_t*);
  static ucs_status_t on_batch(void* self, const void*, size_t, void* data, size_t size, const ucp_am_recv_param_t*);

  uint64_t count_ = 0;
  std::array<Function, 4> table_;
  std::array<BatchedCall, batch> calls_{};
  ucp_ep_h endpoint_ = nullptr;
  std::unique_ptr<UcxParty> party_;
};

}  // namespace tc::bench
