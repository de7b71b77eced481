// SPDX-License-Identifier: Apache-2.0
#include "common/header_sender.h"

#include <utility>

namespace tc::bench {

void HeaderSender::send_bytes(ucp_ep_h endpoint, unsigned id, const Bytes& header) {
  if (free_ == nullptr) {
    all_.push_back(std::make_unique<Kept>());
    all_.back()->sender = this;
    free_ = all_.back().get();
  }
  Kept& kept = *free_;
  kept.header = header;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.cb.send = &HeaderSender::on_sent;
  param.user_data = &kept;
  auto* const request = ucp_am_send_nbx(endpoint, id, kept.header.data(), kept.header.size(), nullptr, 0, &param);
  // Nearly always it is sent by now.
  if (UCS_PTR_IS_PTR(request)) free_ = std::exchange(kept.next, nullptr);
}

void HeaderSender::on_sent(void* request, ucs_status_t, void* user) {
  auto& kept = *static_cast<Kept*>(user);
  ucp_request_free(request);
  kept.next = std::exchange(kept.sender->free_, &kept);
}

}  // namespace tc::bench
