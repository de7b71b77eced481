// SPDX-License-Identifier: Apache-2.0
#include "dapc/am_chase.h"

#include <cstring>

namespace tc::bench {

namespace {

constexpr unsigned chase_id = 1;
constexpr unsigned result_id = 2;

Status connect_all(UcxParty& party, std::span<const std::string> servers, std::vector<ucp_ep_h>& endpoints) {
  for (const auto& address : servers) {
    TC_ASSIGN(auto* const endpoint, party.connect(address));
    endpoints.push_back(endpoint);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<AmChaseServer>> AmChaseServer::create(const std::string& tls, uint32_t index,
                                                             std::span<const uint64_t> shard) {
  std::unique_ptr<AmChaseServer> server(new AmChaseServer);
  server->shard_ = shard;
  server->first_ = index * shard.size();
  TC_ASSIGN(server->party_, UcxParty::create(tls, UCP_FEATURE_AM | UCP_FEATURE_WAKEUP));
  TC_CHECK(server->party_->handle(chase_id, &AmChaseServer::on_chase, server.get()));
  return server;
}

Status AmChaseServer::connect(std::span<const std::string> servers, const std::string& client) {
  TC_CHECK(connect_all(*party_, servers, servers_));
  TC_ASSIGN(client_, party_->connect(client));
  return {};
}

ucs_status_t AmChaseServer::on_chase(void* self, const void* bytes, size_t size, void*, size_t,
                                     const ucp_am_recv_param_t*) {
  auto& server = *static_cast<AmChaseServer*>(self);
  ChaseHeader chase;
  if (size != sizeof chase) return UCS_OK;
  std::memcpy(&chase, bytes, sizeof chase);
  const auto entries = server.shard_.size();
  for (; chase.depth > 0; --chase.depth) {
    const uint64_t offset = chase.address - server.first_;
    if (offset >= entries) break;
    chase.address = server.shard_[offset];
  }
  if (chase.depth == 0)
    server.sender_.send(server.client_, result_id, chase);
  else if (const auto owner = chase.address / entries; owner < server.servers_.size())
    server.sender_.send(server.servers_[owner], chase_id, chase);
  return UCS_OK;
}

Result<std::unique_ptr<AmChaseClient>> AmChaseClient::create(const std::string& tls, uint64_t shard_entries) {
  std::unique_ptr<AmChaseClient> client(new AmChaseClient);
  client->shard_entries_ = shard_entries;
  TC_ASSIGN(client->party_, UcxParty::create(tls, UCP_FEATURE_AM | UCP_FEATURE_WAKEUP));
  TC_CHECK(client->party_->handle(result_id, &AmChaseClient::on_result, client.get()));
  return client;
}

Status AmChaseClient::connect(std::span<const std::string> servers) { return connect_all(*party_, servers, servers_); }

void AmChaseClient::start_next() {
  if (started_ == chases_.starts.size()) return;
  const auto address = chases_.starts[started_];
  const ChaseHeader header{address, chases_.depth, static_cast<uint32_t>(started_++)};
  sender_.send(servers_[address / shard_entries_], chase_id, header);
}

ucs_status_t AmChaseClient::on_result(void* self, const void* bytes, size_t size, void*, size_t,
                                      const ucp_am_recv_param_t*) {
  auto& client = *static_cast<AmChaseClient*>(self);
  ChaseHeader result;
  if (size != sizeof result) return UCS_OK;
  std::memcpy(&result, bytes, sizeof result);
  if (result.chase >= client.started_) return UCS_OK;
  client.chases_.ends[result.chase] = result.address;
  ++client.finished_;
  client.start_next();
  return UCS_OK;
}

Status AmChaseClient::run(const Chases& chases, const Watch& watch) {
  chases_ = chases;
  started_ = finished_ = 0;
  for (uint32_t i = 0; i < chases.inflight; ++i) start_next();
  while (finished_ < chases.starts.size()) {
    party_->wait(Deadline::after_ms(10));
    TC_CHECK(watch());
    TC_CHECK(party_->status());
  }
  return {};
}

}  // namespace tc::bench
