// SPDX-License-Identifier: Apache-2.0
#include "dapc/get_chase.h"

namespace tc::bench {

namespace {
constexpr size_t steps_between_looks = 4096;  // of walks that never wait
}

Result<std::unique_ptr<GetChaseClient>> GetChaseClient::create(const std::string& tls, uint64_t shard_entries) {
  std::unique_ptr<GetChaseClient> client(new GetChaseClient);
  client->shard_entries_ = shard_entries;
  TC_ASSIGN(client->party_, UcxParty::create(tls, UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP));
  return client;
}

Status GetChaseClient::connect(std::span<const GetContact> servers) {
  for (const auto& contact : servers) {
    TC_ASSIGN(auto shard, RemoteMemory::reach(*party_, contact));
    shards_.push_back(std::move(shard));
  }
  return {};
}

// Takes up the next chase. False: there is none.
bool GetChaseClient::start_next(Walk& walk) {
  if (started_ == chases_.starts.size()) return false;
  walk.chase = started_++;
  walk.address = chases_.starts[walk.chase];
  walk.left = chases_.depth;
  return true;
}

// Fetches entries until one has to be waited for. On shared memory none has.
void GetChaseClient::step(Walk& walk) {
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &GetChaseClient::on_entry;
  param.user_data = &walk;
  for (size_t steps = 0; steps < steps_between_looks; ++steps) {
    if (walk.left == 0) {
      chases_.ends[walk.chase] = walk.address;
      ++finished_;
      if (!start_next(walk)) return;
    }
    const auto& shard = shards_[walk.address / shard_entries_];
    const auto remote = shard.address() + walk.address % shard_entries_ * sizeof(uint64_t);
    --walk.left;
    auto* const request =
        ucp_get_nbx(shard.endpoint(), &walk.address, sizeof walk.address, remote, shard.key(), &param);
    if (request == nullptr) continue;
    if (UCS_PTR_IS_ERR(request)) failure_ = UCS_PTR_STATUS(request);
    return;
  }
  due_.push_back(&walk);
}

void GetChaseClient::on_entry(void* request, ucs_status_t status, void* user) {
  auto* const walk = static_cast<Walk*>(user);
  ucp_request_free(request);
  if (status != UCS_OK)
    walk->client->failure_ = status;
  else
    walk->client->due_.push_back(walk);
}

Status GetChaseClient::run(const Chases& chases, const Watch& watch) {
  chases_ = chases;
  started_ = finished_ = 0;
  due_.clear();
  walks_.assign(chases.inflight, Walk{this, 0, 0, 0});
  for (auto& walk : walks_)
    if (start_next(walk)) due_.push_back(&walk);
  while (finished_ < chases.starts.size()) {
    if (due_.empty()) party_->wait(Deadline::after_ms(10));
    ready_.swap(due_);
    for (auto* const walk : ready_) step(*walk);
    ready_.clear();
    TC_CHECK(watch());
    TC_CHECK(check_ucx(failure_, "ucp_get_nbx"));
    TC_CHECK(party_->status());
  }
  return {};
}

}  // namespace tc::bench
