// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx_out.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "transport/ucx_peer.h"
#include "transport/ucx_transport.h"
#include "transport/ucx_worker.h"

namespace tc::transport {

void UcxOut::on_sent(void* request, ucs_status_t, void* user) noexcept {
  auto* const buffer = static_cast<OutBuffer*>(user);
  ucp_request_free(request);
  if (--buffer->operations != 0) return;
  if (buffer->owner != nullptr)
    buffer->owner->give_back(*buffer);
  else if (!buffer->is_borrowed)
    delete buffer;
}

[[gnu::hot]] bool UcxOut::transmit(OutBuffer& buffer, std::byte* first, size_t size) noexcept {
  if (entry_.endpoint == nullptr) [[unlikely]]
    return true;
  if (put_key_ != nullptr) [[unlikely]]
    return put_batch(buffer, (size + wire::alignment - 1) & ~(wire::alignment - 1));
  // While no endpoint has ever failed, this one need not be looked at.
  const bool failed = peer_.transport().has_failures() && peer_.endpoint()->failed();
  const auto request = failed ? UCS_STATUS_PTR(peer_.endpoint()->failure()) : send_batch(entry_, buffer, first, size);
  return request == nullptr || is_sent(buffer, request);
}

// Of a message that was not sent at once.
bool UcxOut::is_sent(OutBuffer& buffer, ucs_status_ptr_t request) noexcept {
  if (UCS_PTR_IS_ERR(request)) {
    peer_.lose(Error{TC_ERR_DISCONNECTED, "sending frames: " + ucx_words(UCS_PTR_STATUS(request))});
    return true;
  }
  ++buffer.operations;
  peer_.transport().watch_peers();
  return false;
}

// ---- puts ----
//
// A put is torn: its last byte can land before its first. So the first header word, which makes the batch visible,
// is left out of the put of all the rest and follows behind a fence in a put of its own, which is aligned and of
// eight bytes. The rest ends with the zero word at the place of the next header.

void UcxOut::open_put(ucp_rkey_h key, uint64_t address, size_t bytes, size_t batch_bytes) noexcept {
  put_key_ = key;
  put_address_ = address + ring_data_offset;
  put_bytes_ = bytes;
  open(std::min(batch_bytes, bytes / 4), bytes - wire::header_bytes);
}

[[gnu::hot]] size_t UcxOut::contiguous() const noexcept {
  if (put_key_ == nullptr) return SIZE_MAX;
  return put_bytes_ - wire::header_bytes - ((BatchOut::position() + ring_start) & (put_bytes_ - 1));
}

void UcxOut::put(OutBuffer& buffer, const std::byte* from, size_t size, uint64_t ring_position) noexcept {
  if (entry_.endpoint == nullptr) return;
  ucp_request_param_t params{};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &UcxOut::on_sent;
  params.user_data = &buffer;
  const uint64_t address = put_address_ + (ring_position & (put_bytes_ - 1));
  const auto request = ucp_put_nbx(entry_.endpoint, from, size, address, put_key_, &params);
  if (UCS_PTR_IS_PTR(request)) {
    ++buffer.operations;
    peer_.transport().watch_peers();
  }
  if (UCS_PTR_IS_ERR(request))
    peer_.lose(Error{TC_ERR_DISCONNECTED, "putting frames: " + ucx_words(UCS_PTR_STATUS(request))});
}

void UcxOut::fence() noexcept {
  if (const auto status = ucp_worker_fence(peer_.transport().worker().get()); status != UCS_OK)
    peer_.lose(Error{TC_ERR_DISCONNECTED, "ordering frames: " + ucx_words(status)});
}

bool UcxOut::put_batch(OutBuffer& buffer, size_t filled) noexcept {
  const uint64_t position = sent() - filled + ring_start;
  put(buffer, buffer.base() + wire::header_bytes, filled, position + wire::header_bytes);
  fence();
  put(buffer, buffer.base(), wire::header_bytes, position);
  if (peer_sleeps_) {
    peer_sleeps_ = false;
    wake_peer();
  }
  return buffer.operations == 0;
}

void UcxOut::transmit_pad(uint64_t stride) noexcept {
  static constexpr uint64_t zero = 0;
  auto* const pad = new (std::nothrow) OutBuffer(wire::alignment);
  if (pad == nullptr) return peer_.lose(Error{TC_ERR_NO_MEMORY, "no memory for a pad"});
  const uint64_t header = wire::encode(wire::Kind::pad, 0, 0, static_cast<uint32_t>(stride - wire::header_bytes));
  std::memcpy(pad->base(), &header, sizeof header);
  pad->operations = 1;  // so that it is not deleted before its last put was started
  const uint64_t position = sent() + ring_start;
  put(*pad, reinterpret_cast<const std::byte*>(&zero), sizeof zero, position + stride);
  fence();
  put(*pad, pad->base(), sizeof header, position);
  if (--pad->operations == 0) delete pad;
}

bool UcxOut::peer_sleeps(uint64_t consumed) noexcept {
  peer_sleeps_ = consumed >= sent();
  return put_key_ != nullptr && !peer_sleeps_;
}

void UcxOut::wake_peer() noexcept { peer_.send_signal(Signal::wake); }

}  // namespace tc::transport
