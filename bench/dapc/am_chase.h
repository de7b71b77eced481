// SPDX-License-Identifier: Apache-2.0
//
// Mode `am`: the Chaser as a handler that was deployed before, over UCX Active Messages. The same algorithm as
// examples/05-pointer-chase/chaser.c, written as a good UCX program would be: the messages are eager, consist of a
// header of 16 bytes, and are sent by the handler itself. Thread: the one that polls the worker.
#pragma once

#include "common/header_sender.h"
#include "common/ucx_party.h"
#include "dapc/mode.h"

namespace tc::bench {

struct ChaseHeader {
  uint64_t address;
  uint32_t depth;  // steps to go
  uint32_t chase;  // the client's number for it
};
static_assert(sizeof(ChaseHeader) == 16);

class AmChaseServer {
 public:
  static Result<std::unique_ptr<AmChaseServer>> create(const std::string& tls, uint32_t index,
                                                       std::span<const uint64_t> shard);
  Result<std::string> address() const { return party_->address(); }
  // The other servers by index (its own address is not used) and the client.
  Status connect(std::span<const std::string> servers, const std::string& client);
  UcxParty& party() noexcept { return *party_; }

 private:
  AmChaseServer() = default;
  static ucs_status_t on_chase(void* self, const void* header, size_t header_size, void*, size_t,
                               const ucp_am_recv_param_t*);
  std::span<const uint64_t> shard_;
  uint64_t first_ = 0;
  std::vector<ucp_ep_h> servers_;
  ucp_ep_h client_ = nullptr;
  HeaderSender sender_;
  std::unique_ptr<UcxParty> party_;
};

class AmChaseClient final : public ChaseClient {
 public:
  static Result<std::unique_ptr<AmChaseClient>> create(const std::string& tls, uint64_t shard_entries);
  Result<std::string> address() const { return party_->address(); }
  Status connect(std::span<const std::string> servers);
  Status run(const Chases& chases, const Watch& watch) override;

 private:
  AmChaseClient() = default;
  void start_next();
  static ucs_status_t on_result(void* self, const void* header, size_t header_size, void*, size_t,
                                const ucp_am_recv_param_t*);
  uint64_t shard_entries_ = 0;
  Chases chases_;
  size_t started_ = 0, finished_ = 0;
  std::vector<ucp_ep_h> servers_;
  HeaderSender sender_;
  std::unique_ptr<UcxParty> party_;
};

}  // namespace tc::bench
