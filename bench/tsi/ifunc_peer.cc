// SPDX-License-Identifier: Apache-2.0
#include "tsi/ifunc_peer.h"

#include "common/embedded.h"
#include "common/node.h"

TC_EMBED(tsi_ifunc, TC_TSI_IFUNC)
TC_EMBED(ten_symbols_ifunc, TC_TEN_SYMBOLS_IFUNC)

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

void IfuncPeer::first_error(tc_status_t status) noexcept {
  if (error_.code == TC_OK) error_ = {status, tc_error_message()};
}

Status IfuncPeer::status() const {
  if (error_.code == TC_OK) return {};
  return fail(error_);
}

Result<Bundle> tsi_bundle() { return Bundle::read(tsi_ifunc()); }

namespace {

Result<Bundle> variant(const Bundle& whole, SliceForm form, const std::string& label) {
  Manifest manifest = whole.manifest();
  manifest.tool = label;
  std::vector<Bytes> stored;
  for (size_t i = 0; i < whole.manifest().slices.size(); ++i) {
    if (whole.manifest().slices[i].form != form) continue;
    const auto slice = whole.stored(i);
    stored.emplace_back(slice.begin(), slice.end());
  }
  std::erase_if(manifest.slices, [&](const Slice& slice) { return slice.form != form; });
  return Bundle::pack(std::move(manifest), std::move(stored));
}

}  // namespace

Result<Bundle> tsi_variant(SliceForm form, const std::string& label) {
  TC_ASSIGN(const auto whole, tsi_bundle());
  return variant(whole, form, label);
}

Result<Bundle> ten_symbols_variant(const std::string& label) {
  TC_ASSIGN(const auto whole, Bundle::read(ten_symbols_ifunc()));
  return variant(whole, SliceForm::object, label);
}

}  // namespace tc::bench
