// SPDX-License-Identifier: Apache-2.0
#include "tsi/ifunc_peer.h"

#include "common/node.h"

namespace tc::bench {

Result<std::unique_ptr<IfuncPeer>> IfuncPeer::create(const BenchTransport& transport, const NodeSettings& further) {
  NodeSettings settings{{"warm-up", "on"}, {"log", "error"}};
  settings.insert(settings.end(), further.begin(), further.end());
  TC_ASSIGN(auto node, make_node(transport, settings));
  std::unique_ptr<IfuncPeer> peer(new IfuncPeer(std::move(node), transport.encrypted()));
  peer->node_.set_target_args(&peer->counter_);
  return peer;
}

IfuncPeer::~IfuncPeer() {
  if (endpoint_) endpoint_->abandon();
}

Status IfuncPeer::connect(const std::string& address) {
  TC_ASSIGN(auto made, bench::connect(node_, address, encrypted_));
  endpoint_ = std::move(made);
  return {};
}

Status IfuncPeer::use(const Bundle& bundle) {
  message_.reset();
  ifunc_.reset();
  return attempt("registering code", [&] {
    ifunc_ = node_.load(bundle.bytes());
    message_ = ifunc_->message(char{1});
    burst_.fill(message_->handle());
  });
}

Status IfuncPeer::flush(uint32_t timeout_ms) {
  return attempt([&] { endpoint_->flush(threechains::milliseconds(timeout_ms)); });
}

Status IfuncPeer::call(uint32_t timeout_ms) {
  const threechains::milliseconds limit(timeout_ms);
  return attempt([&] { (void)endpoint_->call(*message_, limit).bytes(limit); });
}

Result<uint64_t> IfuncPeer::stat(const char* name) {
  return attempt([&] { return node_.stat(name); });
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
