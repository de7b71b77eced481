// SPDX-License-Identifier: Apache-2.0
//
// Mode `get`: the GET-based pointer chase (main paper, IV.D). The client fetches every entry itself with ucp_get_nbx
// from the servers' registered shards.
#pragma once

#include "common/ucx_party.h"
#include "dapc/mode.h"

namespace tc::bench {

// A server's shard, allocated by UCX so that peers reach it as directly as the transport can.
class GetChaseServer {
 public:
  static Result<std::unique_ptr<GetChaseServer>> create(const std::string& tls, uint64_t shard_entries);
  ~GetChaseServer();
  std::span<uint64_t> shard() noexcept { return shard_; }
  // Three words: the worker's address, the shard's key, the shard's address.
  Result<std::string> contact() const;
  UcxParty& party() noexcept { return *party_; }

 private:
  GetChaseServer() = default;
  std::unique_ptr<UcxParty> party_;
  ucp_mem_h memory_ = nullptr;
  std::span<uint64_t> shard_;
};

struct GetContact {
  std::string worker, key;
  uint64_t shard;
};

class GetChaseClient final : public ChaseClient {
 public:
  static Result<std::unique_ptr<GetChaseClient>> create(const std::string& tls, uint64_t shard_entries);
  ~GetChaseClient() override;
  Status connect(std::span<const GetContact> servers);
  Status run(const Chases& chases, const Watch& watch) override;

 private:
  struct Server {
    ucp_ep_h endpoint;
    ucp_rkey_h key;
    uint64_t shard;
  };
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
  std::vector<Server> servers_;
  std::unique_ptr<UcxParty> party_;
};

}  // namespace tc::bench
