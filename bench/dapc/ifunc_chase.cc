// SPDX-License-Identifier: Apache-2.0
#include "dapc/ifunc_chase.h"

#include <cstring>
#include <utility>

#include "05-pointer-chase/chase.h"
#include "base/clock.h"
#include "common/embedded.h"

TC_EMBED(chaser_ifunc, TC_CHASER_IFUNC)
TC_EMBED(hop_ifunc, TC_HOP_IFUNC)

namespace tc::bench {

namespace {

constexpr threechains::milliseconds chase_limit{300'000};
constexpr auto first = ChaseMode::ifunc_object;  // any that no other chaser is added for
constexpr uint32_t hops = 2000;
constexpr threechains::milliseconds watch_interval{10};  // between checks that the servers still live

}  // namespace

Result<threechains::Node> make_chase_server(CodeForm form, const ServerPlace& place, std::span<uint64_t> shard) {
  TC_ASSIGN(auto node, make_server(place, {{"objects", form == CodeForm::object ? "on" : "off"},
                                           {"bitcode", form == CodeForm::bitcode ? "on" : "off"}}));
  TC_CHECK(attempt([&] { node.expose(CHASE_TABLE, std::as_writable_bytes(shard)); }));
  return node;
}

Result<std::unique_ptr<IfuncChaseClient>> IfuncChaseClient::create(const BenchTransport& transport,
                                                                   const std::string& host, uint64_t shard_entries,
                                                                   const std::string& chaser) {
  TC_ASSIGN(
      auto node,
      make_node(transport, {{"name", "dapc client"}, {"listen", host + ":0"}, {"hops", "65535"}, {"log", "error"}}));
  std::unique_ptr<IfuncChaseClient> client(new IfuncChaseClient(std::move(node)));
  client->shard_entries_ = shard_entries;
  client->chosen_ = &client->chasers_[first];
  const auto file = chaser.find('/') == std::string::npos ? "./" + chaser : chaser;
  TC_CHECK(attempt("registering the chaser", [&] {
    client->chosen_->ifunc = chaser.empty() ? client->node_.load(chaser_ifunc()) : client->node_.load(file);
    client->hop_ = client->node_.load(hop_ifunc());
  }));
  return client;
}

IfuncChaseClient::~IfuncChaseClient() {
  for (auto& server : servers_) server.abandon();
}

Status IfuncChaseClient::add(ChaseMode mode, ByteView bundle) {
  return attempt("registering code", [&] { chasers_[mode].ifunc = node_.load(bundle); });
}

void IfuncChaseClient::chase_by(ChaseMode mode) {
  abandon();
  const auto found = chasers_.find(mode);
  chosen_ = found != chasers_.end() ? &found->second : &chasers_.at(first);
}

Status IfuncChaseClient::connect(const std::vector<std::string>& servers, const Watch& watch) {
  for (const auto& address : servers) {
    TC_CHECK(watch());
    TC_CHECK(attempt([&] { servers_.push_back(node_.connect(address, connect_limit)); }));
  }
  return {};
}

Status IfuncChaseClient::start_next(Slot& slot) {
  if (started_ == chases_.starts.size()) return {};
  slot.chase = started_++;
  const auto address = chases_.starts[slot.chase];
  const struct chase chase = {address, chases_.depth, CHASE_TO_CALLER};
  std::memcpy(slot.message.payload().data(), &chase, sizeof chase);
  return attempt([&] { slot.future = servers_[address / shard_entries_].call(slot.message, chase_limit); });
}

Status IfuncChaseClient::take_answer(Slot& slot) {
  const auto future = *std::exchange(slot.future, std::nullopt);
  TC_ASSIGN(const auto bytes, attempt("the chaser", [&] { return future.bytes(threechains::milliseconds(0)); }));
  if (bytes.size() != sizeof(uint64_t))
    return fail(TC_ERR_IFUNC, "the chaser answered {} bytes when 8 were due", bytes.size());
  std::memcpy(&chases_.ends[slot.chase], bytes.data(), bytes.size());
  ++finished_;
  return start_next(slot);
}

void IfuncChaseClient::abandon() {
  for (auto& slot : chosen_->slots) slot.future.reset();
}

Status IfuncChaseClient::run(const Chases& chases, const Watch& watch) {
  abandon();
  chases_ = chases;
  started_ = finished_ = 0;
  auto& slots = chosen_->slots;
  TC_CHECK(attempt([&] {
    while (slots.size() < chases.inflight) slots.push_back({chosen_->ifunc->message(chase{0, 0, 0})});
  }));
  for (uint32_t i = 0; i < chases.inflight; ++i) TC_CHECK(start_next(slots[i]));
  while (finished_ < chases.starts.size()) {
    TC_CHECK(attempt([&] { node_.wait(watch_interval); }));
    for (uint32_t i = 0; i < chases.inflight; ++i)
      if (slots[i].future && slots[i].future->ready()) TC_CHECK(take_answer(slots[i]));
    TC_CHECK(watch());
  }
  return {};
}

Status IfuncChaseClient::wait_for(const threechains::Future& future, const Watch& watch) {
  while (!future.wait(watch_interval)) TC_CHECK(watch());
  return attempt("the hops", [&] { (void)future.bytes(); });
}

Result<double> IfuncChaseClient::hop_us(uint32_t round, const Watch& watch) {
  struct Hop {
    uint32_t to_go, servers, padding[2];
  };
  TC_ASSIGN(const auto message, attempt([&] { return hop_->message(Hop{hops, round, {}}); }));
  const auto started = now_ns();
  TC_ASSIGN(const auto future, attempt([&] { return servers_[0].call(message, chase_limit); }));
  TC_CHECK(wait_for(future, watch));
  return static_cast<double>(now_ns() - started) / 1000 / hops;
}

}  // namespace tc::bench
