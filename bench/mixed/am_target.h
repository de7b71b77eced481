// SPDX-License-Identifier: Apache-2.0
//
// The target by UCX Active Messages, written as a good UCX program would be: small calls are answered by their handler.
// A long call is answered by its handler as well, or is handed to a worker thread and answered by the thread that polls
// once it is done. Thread: the one that polls.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/header_sender.h"
#include "common/ucx_party.h"
#include "mixed/am_call.h"
#include "mixed/worker.h"

namespace tc::bench {

class AmTarget {
 public:
  static Result<std::unique_ptr<AmTarget>> create(const std::string& tls);
  Result<std::string> address() const { return party_->address(); }
  // The clients by their numbers.
  Status connect(std::span<const std::string> clients);
  // Takes what has come and answers it; waits for it at most so long.
  void wait(uint32_t ms);
  void poll();
  Status status() const { return party_->status(); }

 private:
  AmTarget() = default;
  void answer(const AmCall& call);
  void answer_done();
  static ucs_status_t on_small(void* self, const void* header, size_t header_size, void*, size_t,
                               const ucp_am_recv_param_t*);
  static ucs_status_t on_long_in_handler(void* self, const void* header, size_t header_size, void*, size_t,
                                         const ucp_am_recv_param_t*);
  static ucs_status_t on_long_on_worker(void* self, const void* header, size_t header_size, void*, size_t,
                                        const ucp_am_recv_param_t*);

  uint64_t counter_ = 0;
  std::vector<ucp_ep_h> clients_;
  HeaderSender sender_;
  std::unique_ptr<UcxParty> party_;
  std::optional<Worker> worker_;  // ends before what it wakes
};

}  // namespace tc::bench
