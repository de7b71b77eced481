// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/put_out.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace tc::transport {

namespace {

void on_put(void* request, ucs_status_t, void* user) noexcept {
  ucp_request_free(request);
  BatchOut::on_done(*static_cast<OutBuffer*>(user));
}

}  // namespace

void PutOut::open_ring(std::unique_ptr<RemoteKey> key, uint64_t address, size_t bytes, size_t batch_bytes) {
  key_ = std::move(key);
  address_ = address + ring_data_offset;
  bytes_ = bytes;
  open(std::min(batch_bytes, bytes / 4), bytes - wire::header_bytes);
}

size_t PutOut::contiguous() const noexcept {
  return bytes_ - wire::header_bytes - ((position() + ring_start) & (bytes_ - 1));
}

void PutOut::put(OutBuffer& buffer, const std::byte* from, size_t size, uint64_t ring_position) noexcept {
  if (!wire_.is_open() || key_ == nullptr) return;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &on_put;
  params.user_data = &buffer;
  const uint64_t address = address_ + (ring_position & (bytes_ - 1));
  const auto request = ucp_put_nbx(wire_.endpoint()->get(), from, size, address, key_->get(), &params);
  if (UCS_PTR_IS_PTR(request)) ++buffer.operations;
  if (UCS_PTR_IS_ERR(request)) wire_.fail("putting frames", UCS_PTR_STATUS(request));
}

void PutOut::fence() noexcept {
  if (const auto status = ucp_worker_fence(worker_); status != UCS_OK) wire_.fail("ordering frames", status);
}

void PutOut::transmit(OutBuffer& buffer, size_t size) noexcept {
  const size_t filled = (size + wire::alignment - 1) & ~(wire::alignment - 1);
  std::memset(buffer.base() + filled, 0, wire::header_bytes);  // where the next header will be
  const uint64_t place = sent() - filled + ring_start;
  put(buffer, buffer.base() + wire::header_bytes, filled, place + wire::header_bytes);
  fence();
  put(buffer, buffer.base(), wire::header_bytes, place);
  if (peer_sleeps_) {
    peer_sleeps_ = false;
    wire_.send_signal(Signal::wake, 0);
  }
}

void PutOut::transmit_pad(uint64_t stride) noexcept {
  static constexpr uint64_t zero = 0;
  std::unique_ptr<OutBuffer> pad;
  try {
    pad = std::make_unique<OutBuffer>(wire::alignment);
  } catch (const std::bad_alloc&) {
    return wire_.fail("putting a pad", UCS_ERR_NO_MEMORY);
  }
  const uint64_t header = wire::encode(wire::Kind::pad, 0, 0, static_cast<uint32_t>(stride - wire::header_bytes));
  std::memcpy(pad->base(), &header, sizeof header);
  pad->operations = 1;  // so that it is not deleted before its last put was started; it has no owner
  const uint64_t place = sent() + ring_start;
  put(*pad, reinterpret_cast<const std::byte*>(&zero), sizeof zero, place + stride);
  fence();
  put(*pad, pad->base(), sizeof header, place);
  on_done(*pad.release());
}

void PutOut::on_sleeping(uint64_t consumed) noexcept {
  peer_sleeps_ = consumed >= sent();
  if (!peer_sleeps_) wire_.send_signal(Signal::wake, 0);
}

}  // namespace tc::transport
