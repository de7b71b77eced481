// SPDX-License-Identifier: Apache-2.0
//
// A client by UCX Active Messages. Thread: the one that measures.
#pragma once

#include <memory>
#include <string>

#include "common/header_sender.h"
#include "common/ucx_party.h"
#include "mixed/am_call.h"
#include "mixed/burn_work.h"
#include "mixed/client.h"

namespace tc::bench {

class AmClient final : public MixedClient {
 public:
  // `long_id`: the Active Message that is a long call, which says where the work is done.
  static Result<std::unique_ptr<AmClient>> create(const std::string& tls, uint32_t number, unsigned long_id,
                                                  const BurnWork& work);
  Result<std::string> address() const { return party_->address(); }
  Status connect(const std::string& target);
  void poll() override;
  void wait(uint32_t ms) override;

 private:
  AmClient(uint32_t number, unsigned long_id, const BurnWork& work) : number_(number), long_id_(long_id), work_(work) {}
  void send_long() override { sender_.send(endpoint_, long_id_, AmCall{number_, 1, work_.rounds}); }
  void send_small() override { sender_.send(endpoint_, am_small_id, AmCall{number_, 0, 0}); }
  static ucs_status_t on_answer(void* self, const void* header, size_t header_size, void*, size_t,
                                const ucp_am_recv_param_t*);

  const uint32_t number_;
  const unsigned long_id_;
  const BurnWork work_;
  ucp_ep_h endpoint_ = nullptr;
  HeaderSender sender_;
  std::unique_ptr<UcxParty> party_;
};

}  // namespace tc::bench
