// SPDX-License-Identifier: Apache-2.0
//
// The same by UCX's Active Messages: a large message by rendezvous into memory that is there already, answered by an
// empty one.
//
// Thread: one in each process.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "common/ucx_party.h"

namespace tc::bench {

class BulkAm {
 public:
  // `landing`: where large messages come to lie; empty at the source.
  static Result<std::unique_ptr<BulkAm>> create(const std::string& tls, std::span<std::byte> landing);
  Result<std::string> address() const { return party_->address(); }
  Status connect(const std::string& address);

  // At the source: sends, and waits for the answer.
  Status send(ByteView bytes);
  // At the target: takes what comes and answers it.
  Status poll();

 private:
  BulkAm(std::unique_ptr<UcxParty> party, std::span<std::byte> landing) : party_(std::move(party)), landing_(landing) {}
  static ucs_status_t on_data(void* self, const void* header, size_t header_size, void* data, size_t size,
                              const ucp_am_recv_param_t* param);
  static void on_received(void* request, ucs_status_t status, size_t size, void* self);
  static ucs_status_t on_answer(void* self, const void* header, size_t header_size, void* data, size_t size,
                                const ucp_am_recv_param_t* param);

  std::unique_ptr<UcxParty> party_;
  std::span<std::byte> landing_;
  ucp_ep_h endpoint_ = nullptr;
  ucs_status_t problem_ = UCS_OK;
  uint64_t received_ = 0, answered_ = 0;  // large messages, at the target
  uint64_t answers_ = 0;                  // at the source
};

}  // namespace tc::bench
