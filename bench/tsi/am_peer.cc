// SPDX-License-Identifier: Apache-2.0
#include "tsi/am_peer.h"

#include <cstring>

namespace tc::bench {

namespace {

[[gnu::noinline]] void increment(void*, size_t, void* args) { ++*static_cast<uint64_t*>(args); }
[[gnu::noinline]] void do_nothing(void*, size_t, void*) {}

constexpr unsigned single_id = 7;
constexpr unsigned batch_id = 8;
constexpr uint64_t increment_index = 1;
constexpr auto what = "ucp_am_send_nbx";

}  // namespace

AmPeer::AmPeer() : table_{do_nothing, increment, do_nothing, do_nothing} {}

Result<std::unique_ptr<AmPeer>> AmPeer::create(const std::string& tls) {
  std::unique_ptr<AmPeer> peer(new AmPeer);
  TC_ASSIGN(peer->party_, UcxParty::create(tls, UCP_FEATURE_AM, UcxParty::PeerFailure::fatal));
  TC_CHECK(peer->party_->handle(single_id, &AmPeer::on_single, peer.get()));
  TC_CHECK(peer->party_->handle(batch_id, &AmPeer::on_batch, peer.get()));
  return peer;
}

Status AmPeer::connect(const std::string& address) {
  TC_ASSIGN(endpoint_, party_->connect(address));
  return {};
}

ucs_status_t AmPeer::on_single(void* self, const void* header, size_t header_size, void* data, size_t size,
                               const ucp_am_recv_param_t*) {
  auto& peer = *static_cast<AmPeer*>(self);
  uint64_t index;
  if (header_size != sizeof index) return UCS_OK;
  std::memcpy(&index, header, sizeof index);
  peer.table_[index & 3](data, size, &peer.count_);
  return UCS_OK;
}

ucs_status_t AmPeer::on_batch(void* self, const void*, size_t, void* data, size_t size, const ucp_am_recv_param_t*) {
  auto& peer = *static_cast<AmPeer*>(self);
  const auto* const calls = static_cast<const std::byte*>(data);  // UCX aligns nothing
  for (size_t at = 0; at + sizeof(BatchedCall) <= size; at += sizeof(BatchedCall)) {
    BatchedCall call;
    std::memcpy(&call, calls + at, sizeof call);
    peer.table_[call.index & 3](&call.payload, 1, &peer.count_);
  }
  return UCS_OK;
}

void AmPeer::send() {
  static constexpr uint64_t header = increment_index;
  static constexpr char payload = 1;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  auto* const request = ucp_am_send_nbx(endpoint_, single_id, &header, sizeof header, &payload, 1, &param);
  if (request != nullptr) [[unlikely]]
    (void)party_->finish(request, what);
}

void AmPeer::send_batch() {
  // Written anew each time, as a sender of real calls would have to.
  for (auto& call : calls_) {
    call.index = increment_index;
    call.payload = 1;
  }
  asm volatile("" ::: "memory");
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  auto* const request = ucp_am_send_nbx(endpoint_, batch_id, nullptr, 0, calls_.data(), sizeof calls_, &param);
  if (request != nullptr) [[unlikely]]
    (void)party_->finish(request, what);
}

double AmPeer::dispatch_ns(uint64_t calls) {
  uint64_t header = increment_index;
  char payload = 1;
  const auto started = now_ns();
  for (uint64_t i = 0; i < calls; ++i) {
    asm volatile("" : "+m"(header));
    on_single(this, &header, sizeof header, &payload, 1, nullptr);
  }
  const auto spent = now_ns() - started;
  count_ -= calls;
  return static_cast<double>(spent) / static_cast<double>(calls);
}

}  // namespace tc::bench
