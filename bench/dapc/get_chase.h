// SPDX-License-Identifier: Apache-2.0
//
// Mode `get`: the GET-based pointer chase (main paper, IV.D). The client fetches every entry itself with ucp_get_nbx
// from the servers' registered shards. Thread: the one that measures.
#pragma once

#include "common/ucx_party.h"
#include "dapc/mode.h"

namespace tc::bench {

class GetChaseClient final : public ChaseClient {
 public:
  static Result<std::unique_ptr<GetChaseClient>> create(const std::string& tls, uint64_t shard_entries);
  Status connect(std::span<const GetContact> servers);
  Status run(const Chases& chases, const Watch& watch) override;

 private:
  struct Walk {
    GetChaseClient* client;
    uint64_t address;  // where the next entry lands
    size_t chase;
    uint32_t left;
  };
  GetChaseClient() = default;
  bool start_next(Walk& walk);
  void step(Walk& walk);
  static void on_entry(void* request, ucs_status_t status, void* walk);

  uint64_t shard_entries_ = 0;
  Chases chases_;
  size_t started_ = 0, finished_ = 0;
  ucs_status_t failure_ = UCS_OK;
  std::vector<Walk> walks_;
  std::vector<Walk*> due_, ready_;  // their entry has come
  std::unique_ptr<UcxParty> party_;
  std::vector<RemoteMemory> shards_;
};

}  // namespace tc::bench
