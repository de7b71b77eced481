// SPDX-License-Identifier: Apache-2.0
#include "mixed/node_client.h"

#include <cstring>
#include <utility>

#include "common/embedded.h"
#include "tsi/ifunc_peer.h"

TC_EMBED(embedded_burn, TC_BURN_IFUNC)
TC_EMBED(embedded_burn_briefly, TC_BURN_BRIEFLY_IFUNC)

namespace tc::bench {

namespace {

constexpr threechains::milliseconds call_limit{120'000};

}  // namespace

ByteView burn_ifunc() { return embedded_burn(); }
ByteView burn_briefly_ifunc() { return embedded_burn_briefly(); }

Result<threechains::Node> make_mixed_node(const BenchTransport& transport, uint32_t threads, uint64_t& counter) {
  TC_ASSIGN(auto node,
            make_node(transport, {{"warm-up", "on"}, {"log", "error"}, {"threads", std::to_string(threads)}}));
  node.set_target_args(&counter);
  return node;
}

Result<std::unique_ptr<NodeClient>> NodeClient::create(const BenchTransport& transport, ByteView code,
                                                       const BurnWork& work) {
  std::unique_ptr<NodeClient> client(new NodeClient(transport, code, work));
  TC_ASSIGN(client->node_, make_mixed_node(transport, 1, client->counter_));
  return client;
}

NodeClient::~NodeClient() {
  if (endpoint_) endpoint_->abandon();
}

Status NodeClient::connect(const std::string& address) {
  TC_ASSIGN(const auto increment, tsi_bundle());
  TC_CHECK(attempt("registering code", [&] {
    long_ = node_->load(code_).message(work_.rounds);
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
  take_ready();
}

void NodeClient::wait(uint32_t ms) {
  keep(attempt([&] { (void)node_->wait(threechains::milliseconds(ms)); }));
  take_ready();
}

// No order is promised for the answers of concurrent code.
void NodeClient::take_ready() {
  std::erase_if(calls_, [this](const Call& call) {
    if (!call.future.ready()) return false;
    const auto taken = take(call);
    if (taken) answered();
    keep(taken);
    return true;
  });
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
