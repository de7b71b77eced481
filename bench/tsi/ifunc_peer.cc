// SPDX-License-Identifier: Apache-2.0
#include "tsi/ifunc_peer.h"

#include "common/node.h"

namespace tc::bench {

Result<std::unique_ptr<IfuncPeer>> IfuncPeer::create(const BenchTransport& transport) {
  std::unique_ptr<IfuncPeer> peer(new IfuncPeer);
  TC_ASSIGN(peer->node_, make_node(transport, {{"warm-up", "on"}, {"log", "error"}}));
  tc_node_set_target_args(peer->node_, &peer->counter_);
  return peer;
}

IfuncPeer::~IfuncPeer() {
  tc_message_free(message_);
  tc_node_destroy(node_);
}

Status IfuncPeer::connect(const std::string& address) {
  return check(tc_node_connect(node_, address.c_str(), 10'000, &endpoint_), "tc_node_connect");
}

Status IfuncPeer::use(const Bundle& bundle) {
  tc_message_free(std::exchange(message_, nullptr));
  tc_ifunc_deregister(std::exchange(ifunc_, nullptr));
  const auto bytes = bundle.bytes();
  TC_CHECK(check(tc_ifunc_register_memory(node_, bytes.data(), bytes.size(), &ifunc_), "tc_ifunc_register_memory"));
  char payload = 1;
  TC_CHECK(check(tc_message_create(ifunc_, &payload, 1, &message_), "tc_message_create"));
  burst_.fill(message_);
  return {};
}

Status IfuncPeer::flush(uint32_t timeout_ms) {
  return check(tc_endpoint_flush(endpoint_, timeout_ms), "tc_endpoint_flush");
}

Status IfuncPeer::call(uint32_t timeout_ms) {
  tc_future_t* future = nullptr;
  TC_CHECK(check(tc_endpoint_call(endpoint_, message_, timeout_ms, &future), "tc_endpoint_call"));
  auto answered = check(tc_future_wait(future, timeout_ms), "tc_future_wait");
  if (answered) answered = check(tc_future_status(future), "the call");
  tc_future_free(future);
  return answered;
}

Result<uint64_t> IfuncPeer::stat(const char* name) {
  uint64_t value = 0;
  TC_CHECK(check(tc_node_stat(node_, name, &value), "tc_node_stat"));
  return value;
}

void IfuncPeer::settle(uint64_t codes) {
  const auto deadline = Deadline::after_ms(5000);
  while (!deadline.passed() && stat("tuned").value_or(codes) < codes) poll();
}

void IfuncPeer::first_error(tc_status_t status) noexcept {
  if (error_.code == TC_OK) error_ = {status, tc_error_message()};
}

Status IfuncPeer::status() const {
  if (error_.code == TC_OK) return {};
  return fail(error_);
}

}  // namespace tc::bench
