// SPDX-License-Identifier: Apache-2.0
//
// A frame into the target's memory. Two ways:
//
// - Memory that this process can reach (it was allocated by UCX on the same host: ucp_rkey_ptr): the body is copied,
//   then the first word is stored with release. A target that sees that word sees all.
// - Any other: puts, whose bytes may land in any order. The header has checks over itself and the body, so that the
//   target knows when all of it is there; nothing has to be ordered, and no worker to be fenced.
#include <cstdlib>
#include <cstring>

#include "ucp_ifunc/context.h"
#include "ucp_ifunc/errors.h"

namespace tc::ucp {

namespace {

// Frames up to this size are copied so that one put takes all of it. Of larger ones the body is put from where it is.
constexpr size_t staged_frame = 8192;

void put_is_done(void* request, ucs_status_t, void* staging) {
  std::free(staging);
  ucp_request_free(request);
}

// `staging` is freed when the put is done with it; null when `bytes` stay good by themselves.
ucs_status_t put(ucp_ep_h ep, const void* bytes, size_t size, void* staging, uint64_t to, ucp_rkey_h rkey) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = put_is_done;
  param.user_data = staging;
  auto* const request = ucp_put_nbx(ep, bytes, size, to, rkey, &param);
  if (UCS_PTR_IS_PTR(request)) return UCS_INPROGRESS;
  std::free(staging);
  return UCS_PTR_STATUS(request);
}

slot::HeaderBytes checked_header(const Message& message, bool with_code, ByteView body) noexcept {
  auto header = message.header(with_code);
  header.nonce = next_nonce();
  header.body_check = slot::check_of(body);
  return slot::encode(header);
}

ucs_status_t put_frame(ucp_ep_h ep, Message& message, bool with_code, uint64_t to, ucp_rkey_h rkey) {
  const auto body = message.body(with_code);
  const auto header = checked_header(message, with_code, body);
  const size_t first = message.size(with_code) <= staged_frame ? message.size(with_code) : header.size();
  auto* const staging = static_cast<std::byte*>(std::malloc(first));
  if (staging == nullptr) return report({TC_ERR_NO_MEMORY, "no memory to send a frame"});
  std::memcpy(staging, header.data(), header.size());
  if (first > header.size()) {
    std::memcpy(staging + header.size(), body.data(), body.size());
    return put(ep, staging, first, staging, to, rkey);
  }
  // The body first: when it cannot be sent, nothing begins to look like a frame.
  const auto body_status = put(ep, body.data(), body.size(), nullptr, to + header.size(), rkey);
  if (UCS_STATUS_IS_ERR(body_status)) {
    std::free(staging);
    return body_status;
  }
  const auto status = put(ep, staging, first, staging, to, rkey);
  return status == UCS_OK ? body_status : status;
}

}  // namespace

static ucs_status_t send(ucp_ep_h ep, Message& message, uint64_t to, ucp_rkey_h rkey) {
  auto& given = message.ifunc().given;
  const bool with_code = message.ifunc().needs_code(ep);
  void* local = nullptr;
  auto status = UCS_OK;
  if (to % 8 == 0 && ucp_rkey_ptr(rkey, to, &local) == UCS_OK) [[likely]]
    slot::store_ordered(static_cast<std::byte*>(local), message.ordered_header(with_code), message.body(with_code));
  else
    status = put_frame(ep, message, with_code, to, rkey);
  if (UCS_STATUS_IS_ERR(status)) [[unlikely]] {
    (void)report({TC_ERR_IO, fmt::format("ifunc '{}' cannot be put into the target's memory: {}", message.ifunc().name,
                                         ucs_status_string(status))});
    return status;
  }
  if (with_code) given.add(ep);
  return status;
}

}  // namespace tc::ucp

extern "C" ucs_status_t ucp_ifunc_send_nbix(ucp_ep_h ep, ucp_ifunc_msg_t msg, uint64_t remote_addr, ucp_rkey_h rkey) {
  if (msg.frame == nullptr) [[unlikely]]
    return tc::ucp::report_no_message();
  return tc::ucp::guarded([&] { return tc::ucp::send(ep, tc::ucp::Message::of(msg), remote_addr, rkey); });
}
