// SPDX-License-Identifier: Apache-2.0
#include "dapc/ifunc_chase.h"

#include <cstring>
#include <utility>

#include "05-pointer-chase/chase.h"
#include "base/clock.h"
#include "common/embedded.h"
#include "common/node.h"

TC_EMBED(chaser_ifunc, TC_CHASER_IFUNC)
TC_EMBED(hop_ifunc, TC_HOP_IFUNC)

namespace tc::bench {

namespace {

constexpr uint32_t chase_deadline_ms = 300'000;
constexpr uint32_t hops = 2000;
constexpr uint32_t look_ms = 10;  // between looks whether the servers still live

}  // namespace

Result<std::unique_ptr<IfuncChaseServer>> IfuncChaseServer::create(CodeForm form, const Place& place,
                                                                   std::span<uint64_t> shard) {
  std::unique_ptr<IfuncChaseServer> server(new IfuncChaseServer);
  server->form_ = form;
  TC_ASSIGN(server->node_, make_node(place.transport, {{"name", fmt::format("server {}", place.index)},
                                                       {"listen", element(place.cluster, place.index)},
                                                       {"cluster", place.cluster},
                                                       {"id", std::to_string(place.index)},
                                                       {"trust", place.trust},
                                                       {"objects", form == CodeForm::object ? "on" : "off"},
                                                       {"bitcode", form == CodeForm::bitcode ? "on" : "off"},
                                                       {"log", "error"}}));
  TC_CHECK(check(tc_node_expose(server->node_, CHASE_TABLE, shard.data(), shard.size_bytes()), "tc_node_expose"));
  return server;
}

IfuncChaseServer::~IfuncChaseServer() { tc_node_destroy(node_); }

Status IfuncChaseServer::settle() {
  if (form_ == CodeForm::object) return check(tc_node_wait(node_, 1, nullptr), "tc_node_wait");
  return wait_until_tuned(node_);
}

uint64_t IfuncChaseServer::executed() const {
  uint64_t value = 0;
  (void)tc_node_stat(node_, "executed", &value);
  return value;
}

Result<std::unique_ptr<IfuncChaseClient>> IfuncChaseClient::create(const BenchTransport& transport,
                                                                   const std::string& host, const std::string& trust,
                                                                   uint64_t shard_entries, const std::string& chaser) {
  std::unique_ptr<IfuncChaseClient> client(new IfuncChaseClient);
  client->shard_entries_ = shard_entries;
  TC_ASSIGN(
      client->node_,
      make_node(
          transport,
          {{"name", "dapc client"}, {"listen", host + ":0"}, {"trust", trust}, {"hops", "65535"}, {"log", "error"}}));
  const auto reg = [&](ByteView bundle, tc_ifunc_t** ifunc) {
    return check(tc_ifunc_register_memory(client->node_, bundle.data(), bundle.size(), ifunc), "registering code");
  };
  if (chaser.empty()) {
    TC_CHECK(reg(chaser_ifunc(), &client->chaser_.ifunc));
  } else {
    const auto file = chaser.find('/') == std::string::npos ? "./" + chaser : chaser;
    TC_CHECK(check(tc_ifunc_register(client->node_, file.c_str(), &client->chaser_.ifunc), "registering the chaser"));
  }
  TC_CHECK(reg(hop_ifunc(), &client->hop_));
  return client;
}

IfuncChaseClient::~IfuncChaseClient() {
  abandon();
  for (auto& slot : chaser_.slots) tc_message_free(slot.message);
  for (auto& [mode, chaser] : added_)
    for (auto& slot : chaser.slots) tc_message_free(slot.message);
  tc_node_destroy(node_);
}

Status IfuncChaseClient::add(ChaseMode mode, ByteView bundle) {
  return check(tc_ifunc_register_memory(node_, bundle.data(), bundle.size(), &added_[mode].ifunc), "registering code");
}

void IfuncChaseClient::chase_by(ChaseMode mode) {
  abandon();
  const auto found = added_.find(mode);
  chosen_ = found != added_.end() ? &found->second : &chaser_;
}

Status IfuncChaseClient::connect(const std::vector<std::string>& servers, const Watch& watch) {
  for (const auto& address : servers) {
    TC_CHECK(watch());
    tc_endpoint_t* endpoint = nullptr;
    TC_CHECK(check(tc_node_connect(node_, address.c_str(), 10'000, &endpoint), "tc_node_connect"));
    servers_.push_back(endpoint);
  }
  return {};
}

Status IfuncChaseClient::start_next(Slot& slot) {
  if (started_ == chases_.starts.size()) return {};
  slot.chase = started_++;
  const auto address = chases_.starts[slot.chase];
  const struct chase chase = {address, chases_.depth, CHASE_TO_ASKER};
  std::memcpy(tc_message_payload(slot.message, nullptr), &chase, sizeof chase);
  return check(tc_endpoint_call(servers_[address / shard_entries_], slot.message, chase_deadline_ms, &slot.future),
               "tc_endpoint_call");
}

Status IfuncChaseClient::take_answer(Slot& slot) {
  tc_future_t* const future = std::exchange(slot.future, nullptr);
  const std::unique_ptr<tc_future_t, void (*)(tc_future_t*)> owned(future, &tc_future_free);
  TC_CHECK(check(tc_future_status(future), "the chaser"));
  size_t size = 0;
  const void* const bytes = tc_future_bytes(future, &size);
  if (size != sizeof(uint64_t)) return fail(TC_ERR_IFUNC, "the chaser answered {} bytes when 8 were due", size);
  std::memcpy(&chases_.ends[slot.chase], bytes, size);
  ++finished_;
  return start_next(slot);
}

void IfuncChaseClient::abandon() {
  for (auto& slot : chosen_->slots) tc_future_free(std::exchange(slot.future, nullptr));
}

Status IfuncChaseClient::run(const Chases& chases, const Watch& watch) {
  abandon();
  chases_ = chases;
  started_ = finished_ = 0;
  auto& slots = chosen_->slots;
  while (slots.size() < chases.inflight) {
    struct chase chase = {0, 0, 0};
    slots.emplace_back();
    TC_CHECK(
        check(tc_message_create(chosen_->ifunc, &chase, sizeof chase, &slots.back().message), "tc_message_create"));
  }
  for (uint32_t i = 0; i < chases.inflight; ++i) TC_CHECK(start_next(slots[i]));
  while (finished_ < chases.starts.size()) {
    TC_CHECK(check(tc_node_wait(node_, look_ms, nullptr), "tc_node_wait"));
    for (uint32_t i = 0; i < chases.inflight; ++i)
      if (slots[i].future != nullptr && tc_future_ready(slots[i].future) != 0) TC_CHECK(take_answer(slots[i]));
    TC_CHECK(watch());
  }
  return {};
}

Status IfuncChaseClient::wait_for(tc_future_t* future, const Watch& watch) {
  while (tc_future_ready(future) == 0) {
    const auto status = tc_future_wait(future, look_ms);
    if (status != TC_OK && status != TC_ERR_TIMEOUT) return check(status, "the hops");
    TC_CHECK(watch());
  }
  return check(tc_future_status(future), "the hops");
}

Result<double> IfuncChaseClient::hop_us(uint32_t round, const Watch& watch) {
  const struct {
    uint32_t to_go, servers, padding[2];
  } hop{hops, round, {}};
  tc_message_t* raw = nullptr;
  TC_CHECK(check(tc_message_create(hop_, const_cast<void*>(static_cast<const void*>(&hop)), sizeof hop, &raw),
                 "tc_message_create"));
  const std::unique_ptr<tc_message_t, void (*)(tc_message_t*)> message(raw, &tc_message_free);
  const auto started = now_ns();
  tc_future_t* future = nullptr;
  TC_CHECK(check(tc_endpoint_call(servers_[0], raw, chase_deadline_ms, &future), "tc_endpoint_call"));
  const std::unique_ptr<tc_future_t, void (*)(tc_future_t*)> owned(future, &tc_future_free);
  TC_CHECK(wait_for(future, watch));
  return static_cast<double>(now_ns() - started) / 1000 / hops;
}

}  // namespace tc::bench
