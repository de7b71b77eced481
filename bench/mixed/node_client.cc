// SPDX-License-Identifier: Apache-2.0
#include "mixed/node_client.h"

#include <cstring>
#include <utility>

#include "common/embedded.h"
#include "tsi/ifunc_peer.h"

TC_EMBED(burn_ifunc, TC_BURN_IFUNC)

namespace tc::bench {

namespace {

constexpr threechains::milliseconds call_limit{120'000};

}  // namespace

Result<threechains::Node> make_mixed_node(const BenchTransport& transport, uint64_t& counter) {
  TC_ASSIGN(auto node, make_node(transport, {{"warm-up", "on"}, {"log", "error"}}));
  node.set_target_args(&counter);
  return node;
}

Result<std::unique_ptr<NodeClient>> NodeClient::create(const BenchTransport& transport, const LongWork& work) {
  std::unique_ptr<NodeClient> client(new NodeClient(transport, work));
  TC_ASSIGN(client->node_, make_mixed_node(transport, client->counter_));
  return client;
}

NodeClient::~NodeClient() {
  if (endpoint_) endpoint_->abandon();
}

Status NodeClient::connect(const std::string& address) {
  TC_ASSIGN(const auto increment, tsi_bundle());
  TC_CHECK(attempt("registering code", [&] {
    long_ = node_->load(burn_ifunc()).message(work_.rounds);
    small_ = node_->load(increment.bytes()).message(char{1});
  }));
  TC_ASSIGN(auto made, bench::connect(*node_, address, encrypted_));
  endpoint_ = std::move(made);
  return {};
}

void NodeClient::send(const threechains::Message& message, bool is_long) {
  keep(attempt("a call", [&] { calls_.push_back({endpoint_->call(message, call_limit), is_long}); }));
}

void NodeClient::poll() {
  keep(attempt([&] { (void)node_->poll(); }));
  while (!calls_.empty() && calls_.front().future.ready()) {
    const auto taken = take(calls_.front());
    calls_.pop_front();
    if (taken) answered();
    keep(taken);
  }
}

Status NodeClient::take(const Call& call) const {
  TC_ASSIGN(const auto bytes,
            attempt("an answer", [&] { return call.future.bytes(threechains::milliseconds::zero()); }));
  if (!call.is_long) return {};
  uint64_t result = 0;
  if (bytes.size() == sizeof result) std::memcpy(&result, bytes.data(), sizeof result);
  if (result == work_.result) return {};
  return fail(TC_ERR_INTERNAL, "a long call answered {} when {} was due", result, work_.result);
}

}  // namespace tc::bench
