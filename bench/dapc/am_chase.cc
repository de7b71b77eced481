// SPDX-License-Identifier: Apache-2.0
#include "dapc/am_chase.h"

#include <cstring>
#include <utility>

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

void HeaderSender::send(ucp_ep_h endpoint, unsigned id, const ChaseHeader& header) {
  if (free_ == nullptr) {
    all_.push_back(std::make_unique<Kept>());
    all_.back()->sender = this;
    free_ = all_.back().get();
  }
  Kept& kept = *free_;
  kept.header = header;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = &HeaderSender::on_sent;
  param.user_data = &kept;
  auto* const request = ucp_am_send_nbx(endpoint, id, &kept.header, sizeof kept.header, nullptr, 0, &param);
  // Nearly always it is sent by now. (The endpoint's error handler reports a failure.)
  if (UCS_PTR_IS_PTR(request)) free_ = std::exchange(kept.next, nullptr);
}

void HeaderSender::on_sent(void* request, ucs_status_t, void* user) {
  auto& kept = *static_cast<Kept*>(user);
  ucp_request_free(request);
  kept.next = std::exchange(kept.sender->free_, &kept);
}

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
